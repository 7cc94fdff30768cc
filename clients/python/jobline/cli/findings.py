"""What a check found, of a server or of its files: a value, how bad it is, and its line."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rich.text import Text

from jobline._printable import printable


class Health(Enum):
    """How bad it is; a higher number is worse."""

    FINE = 0
    WORRYING = 1
    FAILED = 2


_MARKS = {
    Health.FINE: ("✓", "green"),
    Health.WORRYING: ("!", "yellow"),
    Health.FAILED: ("✗", "red"),
}


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


def line_of(finding: Finding) -> Text:
    """A finding as a line, and a second one where there is something to do."""
    mark, style = _MARKS[finding.health]
    line = Text.assemble((mark, style), f" {finding.what:<14}", printable(finding.found))
    if finding.advice:
        line.append(f"\n  → {printable(finding.advice)}", style="dim")
    return line
