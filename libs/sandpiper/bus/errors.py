"""Everything that can go wrong on the bus, and how a handler says what should happen next.

BusError
├── BusUnavailable        the broker did not answer in time
├── DlqLimitExceeded      dead letters came too fast; the consumer stopped
└── Undeliverable         a record that no handler can be given (reason becomes the dead letter's)
Retry                     raised by a handler: try again later, the fault is outside the message
Reject                    raised by a handler: never try again, dead-letter at once
"""

from __future__ import annotations

from typing import Literal

Reason = Literal["unparseable", "schema_version", "handler_error", "claim_check", "expired"]


class BusError(Exception):
    """Base of the bus's own failures."""


class BusUnavailable(BusError):
    """The broker could not be reached, or did not acknowledge, before the deadline."""

    transient = True


class DlqLimitExceeded(BusError):
    """More dead letters than the limit allows: a bad deploy must not drain a topic."""


class Undeliverable(BusError):
    """The record cannot become a message: `reason` says why."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason: Reason = reason
        self.detail = detail


class Retry(Exception):
    """The handler met a fault outside the message (a store or database that is away)."""


class Reject(Exception):
    """The handler will never accept this message. `reason` becomes the dead letter's reason."""

    def __init__(self, reason: Reason = "handler_error", detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason: Reason = reason
        self.detail = detail


# Failures of stores and databases, by name, so that this module needs neither of them installed.
_TRANSIENT_NAMES = frozenset(
    {
        "OperationalError",
        "InterfaceError",
        "StoreUnavailable",
        "PostgresConnectionError",
        "CannotConnectNowError",
    }
)


def is_transient(error: BaseException) -> bool:
    """True when the failure lies outside the message, so that trying again later can help.

    That is: Retry, connection and timeout errors, an exception class with `transient = True`, and
    database or store outages by class name (SQLAlchemy OperationalError and InterfaceError, ...).
    """
    if isinstance(error, Retry | ConnectionError | TimeoutError):
        return True
    if getattr(error, "transient", False) is True:
        return True
    return any(cls.__name__ in _TRANSIENT_NAMES for cls in type(error).__mro__)
