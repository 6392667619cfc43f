"""Brokers for every integration test; see `brokers.py`."""

from __future__ import annotations

from tests.integration.brokers import broker, own_broker

__all__ = ["broker", "own_broker"]
