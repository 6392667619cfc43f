"""What can go wrong between a service and the object store."""

from __future__ import annotations


class StoreError(Exception):
    """Any failure of the object store boundary."""


class StoreUnavailable(StoreError):
    """The store did not answer within the deadline, or kept failing. Worth a later retry."""


class StoreRefused(StoreError):
    """The store answered and said no (credentials, bucket name, malformed request). A retry will not help."""


class MissingObject(StoreError):
    """The object that was asked for is not there."""


class CorruptObject(StoreError):
    """The bytes that came back are not those whose digest was promised."""
