"""Callers that wait, and a board that keeps the calls that it hung up."""

from __future__ import annotations

from functools import partial
from typing import Any

from jobline._wait.wait_board import WaitBoard
from jobline._wait.wait_call import WaitCall
from jobline.errors import JoblineError
from jobline.v1 import job_pb2
from jobline.v1 import job_service_pb2 as pb


class Waiter:
    def __init__(self, *ids: int, until: float = 100.0) -> None:
        self.ids = ids
        self.until = until
        self.told: list[Any] = []

    def put(self, told: pb.WaitResponse | JoblineError) -> None:
        self.told.append(told)

    @property
    def ended(self) -> list[int]:
        return [one.id for one in self.told]


class Line(WaitBoard):
    """A board, and the calls that were hung up."""

    def __init__(self) -> None:
        super().__init__(lambda: 1.0)
        self.hung_up: list[WaitCall] = []

    def opened(self, now: float) -> list[WaitCall]:
        calls = self.calls_to_open(now)
        for call in calls:
            call.hang_up = partial(self.hung_up.append, call)
        return calls

    def add_each(self, *ids: int) -> list[Waiter]:
        waiters = [Waiter(id_) for id_ in ids]
        for waiter in waiters:
            self.add(waiter)
        return waiters


def ended(id_: int) -> pb.WaitResponse:
    return pb.WaitResponse(id=id_, state=job_pb2.JOB_STATE_COMPLETED)


def gone(id_: int) -> pb.WaitResponse:
    return pb.WaitResponse(id=id_, not_found=True)
