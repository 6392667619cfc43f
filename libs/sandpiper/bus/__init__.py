"""Messages between services: typed topics on Kafka, at-least-once, with dead letters and claim checks."""
