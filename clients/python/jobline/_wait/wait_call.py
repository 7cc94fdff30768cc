"""`WaitCall`: an open call of `Wait`, whose jobs several callers may wait for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from jobline._times import to_duration
from jobline.errors import JoblineError
from jobline.v1 import job_service_pb2 as pb

# Ids of one call; the protocol's limit.
IDS_MAX = 10_000

Told = pb.WaitResponse | JoblineError


class Waiter(Protocol):
    """A caller that waits, as the board sees it."""

    @property
    def until(self) -> float:
        """When it gives up."""

    @property
    def ids(self) -> tuple[int, ...]:
        """The jobs that it waits for."""

    def put(self, told: Told) -> None:
        """Takes how a job ended, or why the wait is over."""


def _nothing() -> None:
    """A call that has not begun has nothing to hang up."""


@dataclass(slots=True, eq=False)
class WaitCall:
    """`ids`: what was asked for, less what was answered. `needed`: those of them that somebody
    waits for and that were not handed to a newer call. `olds`: calls whose jobs this one took over,
    open until the server must have heard of it. `hang_up`: ends the call; set by who makes it.
    """

    ids: set[int]
    opened: float
    timeout: float
    needed: int
    olds: list[WaitCall] = field(default_factory=list)
    is_old: bool = False
    hang_up: Callable[[], object] = _nothing

    def request(self) -> pb.WaitRequest:
        """Returns the request that the call is made with."""
        return pb.WaitRequest(ids=sorted(self.ids), timeout=to_duration(self.timeout))
