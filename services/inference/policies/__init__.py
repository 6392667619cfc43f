"""Which policy to serve: what was published, what lies on disk, what is resident in the engine."""
