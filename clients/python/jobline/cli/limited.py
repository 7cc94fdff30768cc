"""How a limit for a time is shown."""

from __future__ import annotations

from datetime import datetime

from jobline.cli.durations import show_moment


def show_limited(until: datetime | None, by: str, reason: str) -> str:
    """Returns until when nothing goes out, by whom and why; "" without a limit."""
    if until is None:
        return ""
    who = f" by {by}" if by else ""
    return ": ".join(filter(None, [f"until {show_moment(until)}{who}", reason]))
