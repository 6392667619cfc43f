"""Sandpiper: post-trains language models by letting them act."""

__version__ = "0.1.0"
