"""Text that others wrote, fit for a terminal and a log."""

from __future__ import annotations


def printable(text: str) -> str:
    """Returns text with control characters made visible: what a job carries or a server says must
    not steer a terminal.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char in "\n\t" or char.isprintable() or char == "\u200d" else "\ufffd"
        for char in text
    )


def printable_line(text: str) -> str:
    """Returns text as one line: nobody may write lines of a log in another's name."""
    return text if text.isprintable() else printable(" ".join(text.split()))
