"""Ctrl-C while a program imports its modules, which takes up to a second: it ends the process in
silence. As an exception it would be a traceback through modules that nobody asked for, and Python
prints and forgets one that comes within a callback of its import system.

Imports nothing that takes time: what comes before it is not covered.
"""

from __future__ import annotations

import os
import signal

# As a shell says it of a program that SIGINT has ended.
INTERRUPTED = 130


def end_quietly() -> None:
    """Has SIGINT end the process at once, until `raise_interrupts`. Call it while there is nothing
    to write or to put back. Does nothing where SIGINT is ignored or handled, and in other threads
    than the main one.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        try:
            signal.signal(signal.SIGINT, _end)
        except ValueError:  # another thread
            return


def raise_interrupts() -> None:
    """Has SIGINT raise `KeyboardInterrupt` again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class EndingQuietly:
    """Does so for the length of a block, which imports what takes time."""

    def __enter__(self) -> None:
        end_quietly()

    def __exit__(self, *_error: object) -> None:
        raise_interrupts()


def _end(_number: int, _frame: object) -> None:
    os._exit(INTERRUPTED)
