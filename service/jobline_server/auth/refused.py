"""Why a caller is not known, as the reasons that the protocol has for it."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """The `reason` of a refusal; `errors.proto` says when each is given."""

    AUTH_REQUIRED = "AUTH_REQUIRED"
    TOKEN_MALFORMED = "TOKEN_MALFORMED"
    TOKEN_UNKNOWN = "TOKEN_UNKNOWN"
    TOKEN_EXPIRED = "TOKEN_EXPIRED"
    AUTH_UNAVAILABLE = "AUTH_UNAVAILABLE"
    NOT_ALLOWED = "NOT_ALLOWED"


class NotAuthenticated(Exception):
    """A caller is not known. The message is for the caller: it repeats nothing that was sent."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


def malformed(what: str) -> NotAuthenticated:
    """Returns the refusal of a token that is none."""
    return NotAuthenticated(Reason.TOKEN_MALFORMED, what)


def unknown(what: str) -> NotAuthenticated:
    """Returns the refusal of a token that this server does not accept."""
    return NotAuthenticated(Reason.TOKEN_UNKNOWN, what)


def expired(what: str) -> NotAuthenticated:
    """Returns the refusal of a token whose time is over."""
    return NotAuthenticated(Reason.TOKEN_EXPIRED, what)
