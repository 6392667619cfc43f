"""Sandbox backends behind one protocol."""
