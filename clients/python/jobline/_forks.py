"""What each process makes for itself: a fork copies everything, and much of it may not be shared.

A request id that parent and child both draw makes two pushes one. A connection that both write to
serves neither. A lock that another thread held at the fork is never released in the child. Such
parts of a client are kept in a `PerProcess`, and made anew where they are first used.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

T = TypeVar("T")


class Forks:
    """Counts the forks between this process and the first, where asking the system for the process
    id each time would cost too much.
    """

    count = 0

    @classmethod
    def count_one(cls) -> None:
        """Counts a fork, in its child."""
        cls.count += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=Forks.count_one)


class PerProcess(Generic[T]):
    """A value that is made once in each process, at its first use there.

    The process id is compared with each use, as `os.register_at_fork` does not hear of forks that a
    server written in C makes. What a parent made stays referenced: to destroy it here would close
    the parent's connection.
    """

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: dict[int, T] = {}

    def __call__(self) -> T:
        """Returns this process's value."""
        made = self._made.get(os.getpid())
        if made is None:
            # Without a lock, which might be held at a fork: of two threads one's value is taken.
            made = self._made.setdefault(os.getpid(), self._make())
        return made

    def made(self) -> T | None:
        """Returns this process's value if it was made already."""
        return self._made.get(os.getpid())


class NeverPickled:
    """Base of what is never sent to another process: connections, threads and handlers.
    `multiprocessing` pickles what it passes to processes that it starts without a fork.
    """

    def __reduce__(self) -> NoReturn:
        """Raises TypeError, as Python does for what cannot be pickled."""
        kind = type(self).__name__
        raise TypeError(
            f"cannot pickle a {kind}: make one in each process, at the top of a module or in a "
            'function that runs there, or fork: multiprocessing.get_context("fork")'
        )
