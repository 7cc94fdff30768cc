"""Whether the disk is full, logged when it begins and when it ends; and which facts may take the
last of the reserve.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

from jobline_server.engine.entries import Fact, JobsAgedOut, JobsDeleted
from jobline_server.engine.queue_entries import QueueChanged, QueueDeleted
from jobline_server.storage.space import Space
from jobline_server.telemetry.log import logger

LOG = logger("runtime")
# What the last of the reserve is for: retention, deletes, and settings that keep fewer jobs.
MAKES_ROOM = (JobsDeleted, JobsAgedOut, QueueChanged, QueueDeleted)


class Disk:
    """Whether the disk of a store is full."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._is_full = False
        self._makers = 0

    @property
    def is_full(self) -> bool:
        """Returns whether pushes are refused because the disk is full."""
        return self._is_full

    @is_full.setter
    def is_full(self, is_full: bool) -> None:
        if is_full == self._is_full:
            return
        self._is_full = is_full
        if is_full:
            LOG.error(
                "the disk is full: pushes are refused, acks go on from the reserve; make room on "
                "it, delete jobs, or keep fewer",
                free_bytes=self._space.free_bytes(),
            )
        else:
            LOG.warning("the disk has room again: pushes are taken")

    @contextmanager
    def making_room(self) -> Iterator[None]:
        """Lets every commit take the last of the reserve meanwhile: the caller deletes, and what it
        waits for before that (its own record, the commits of others) may not wait for room.
        """
        self._makers += 1
        try:
            yield
        finally:
            self._makers -= 1

    def may_take_last(self, batches: Iterable[Sequence[Fact]]) -> bool:
        """Returns whether a commit of these facts may take the last of the reserve."""
        return self._makers > 0 or make_room(batches)


def make_room(batches: Iterable[Sequence[Fact]]) -> bool:
    """Returns whether any of these facts frees room."""
    return any(isinstance(fact, MAKES_ROOM) for fact in chain.from_iterable(batches))
