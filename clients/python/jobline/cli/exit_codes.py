"""Exit codes: one table, shown by `--help`, kept true in `docs/operations.md` by a test.

A script may rely on them: what failed for good, what may be tried again, what is not known.
"""

from __future__ import annotations

from enum import IntEnum

from jobline import errors


class Exit(IntEnum):
    """How a command ended."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    UNREACHABLE = 4
    REFUSED = 5
    NOT_DONE = 6
    TIMED_OUT = 7
    UNKNOWN = 8
    INTERRUPTED = 130


MEANINGS: dict[Exit, str] = {
    Exit.OK: "done",
    Exit.FAILED: "failed: a bug, damaged data, a check of `doctor`, or you did not confirm",
    Exit.USAGE: "the command line or a field is wrong; nothing was changed",
    Exit.NOT_FOUND: "no such job, queue or file",
    Exit.UNREACHABLE: "no server answered in time; a later try may work",
    Exit.REFUSED: "refused (state, limit, permission; files in use or newer); all is as it was",
    Exit.NOT_DONE: "a job that was waited for is dead, cancelled or expired",
    Exit.TIMED_OUT: "a job that was waited for has not ended yet",
    Exit.UNKNOWN: "a write was sent and no answer came; safe to repeat with the same --job-key",
    Exit.INTERRUPTED: "interrupted from the keyboard",
}


class UsageError(ValueError):
    """Something on the command line is wrong; the message names it, and what would be right."""


# The first class that fits decides, so narrow ones come first.
_OF_ERROR: list[tuple[type[errors.JoblineError], Exit]] = [
    (errors.WaitTimeout, Exit.TIMED_OUT),
    (errors.JobNotDone, Exit.NOT_DONE),
    (errors.OutcomeUnknown, Exit.UNKNOWN),
    (errors.InvalidArgument, Exit.USAGE),
    (errors.NotFound, Exit.NOT_FOUND),
    (errors.Unavailable, Exit.UNREACHABLE),
    (errors.DeadlineExceeded, Exit.UNREACHABLE),
]


def code_of(error: errors.JoblineError) -> Exit:
    """The exit code for an error of the client."""
    for kind, code in _OF_ERROR:
        if isinstance(error, kind):
            return code
    return Exit.REFUSED if error.definite else Exit.FAILED


def as_lines() -> str:
    """The table as text, a line a code."""
    return "\n".join(f"{int(code):>3}  {meaning}" for code, meaning in MEANINGS.items())
