"""From messages to token ids and back: chat templates, exact prefixes, stop rules."""
