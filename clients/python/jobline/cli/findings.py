"""What a check of `jobline doctor` found: a value, and how bad it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Health(Enum):
    """How bad it is; a higher number is worse."""

    FINE = 0
    WORRYING = 1
    FAILED = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """What was checked, what was found, and what to do about it."""

    what: str
    found: str
    health: Health
    advice: str = ""


def fine(what: str, found: str) -> Finding:
    """All is well."""
    return Finding(what, found, Health.FINE)


def worrying(what: str, found: str, advice: str) -> Finding:
    """It works, but deserves attention."""
    return Finding(what, found, Health.WORRYING, advice)


def failed(what: str, found: str, advice: str) -> Finding:
    """It does not work."""
    return Finding(what, found, Health.FAILED, advice)
