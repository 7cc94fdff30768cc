"""Reports to send: progress, messages and checkpoints of jobs that run. Pure.

Reports of a job that come faster than they can be sent are merged. The server does not confirm
them, so the newest checkpoint of each held lease is kept and sent again on a new stream.
"""

from __future__ import annotations

from typing import TypedDict, Unpack

from jobline._stream.pieces import Pieces
from jobline.v1 import job_service_pb2 as pb

# Reports of one frame; the rest follow in the next.
ITEMS_MAX = 10_000
# Checkpoints of one frame, in bytes; the one that goes over it still goes.
CHECKPOINT_BYTES_MAX = 2 << 20


class Report(TypedDict, total=False):
    """What a handler says of its job; `partial` is a piece of the result, of which none replaces
    another.
    """

    progress: float | None
    message: str | None
    checkpoint: bytes | None
    partial: bytes | None


class Reports:
    """Holds the reports of one session that were not sent.

    The end of a phase is an item of its own, and stays in order: `_phases` has those that wait,
    `_finished` all of each held lease, which are sent again on a new stream.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, pb.ExtendItem] = {}
        self._pieces = Pieces()
        self._checkpoints: dict[int, tuple[int, bytes]] = {}
        self._phases: list[pb.ExtendItem] = []
        self._finished: dict[int, list[pb.ExtendItem]] = {}

    def __bool__(self) -> bool:
        """Returns whether a report waits to be sent."""
        return bool(self._waiting or self._phases or self._pieces)

    def add(self, id_: int, delivery: int, **report: Unpack[Report]) -> None:
        """Adds a report; it replaces what was not sent yet, field by field."""
        progress, message = report.get("progress"), report.get("message")
        checkpoint, partial = report.get("checkpoint"), report.get("partial")
        if partial is not None:
            self._pieces.add(id_, delivery, partial)
            return
        item = self._waiting.get(id_)
        if item is None or item.delivery != delivery:
            item = self._waiting[id_] = pb.ExtendItem(id=id_, delivery=delivery)
        if progress is not None:
            item.progress = progress
        if message is not None:
            item.message = message
        if checkpoint is not None:
            item.checkpoint = checkpoint
            self._checkpoints[id_] = (delivery, checkpoint)

    def finish_phase(self, id_: int, delivery: int, name: str, result: bytes) -> None:
        """Adds the end of a phase. Progress within it is not worth sending any more."""
        waiting = self._waiting.get(id_)
        if waiting is not None:
            waiting.ClearField("progress")
            waiting.ClearField("message")
        item = pb.ExtendItem(id=id_, delivery=delivery, phase=name, phase_result=result)
        self._phases.append(item)
        self._finished.setdefault(id_, []).append(item)

    def take(self) -> list[pb.ExtendItem]:
        """Removes and returns as many reports as one frame may carry."""
        items = self._pieces.take()
        total = sum(len(item.partial) for item in items)
        while self._phases and total < CHECKPOINT_BYTES_MAX and len(items) < ITEMS_MAX:
            items.append(self._phases.pop(0))
            total += len(items[-1].phase_result)
        if self._phases:
            return items  # what was reported since is about later phases
        while self._waiting and total < CHECKPOINT_BYTES_MAX and len(items) < ITEMS_MAX:
            item = self._waiting.pop(next(iter(self._waiting)))
            total += len(item.checkpoint)
            items.append(item)
        return items

    def forget(self, id_: int) -> None:
        """Drops the reports of a job that is done; the ends of its phases are sent before."""
        if self._waiting or self._checkpoints or self._finished:
            self._waiting.pop(id_, None)
            self._checkpoints.pop(id_, None)
            self._finished.pop(id_, None)

    def lose(self, id_: int) -> None:
        """Drops the reports of a job whose lease is lost."""
        self.forget(id_)
        self._pieces.forget(id_)
        if self._phases:
            self._phases = [item for item in self._phases if item.id != id_]

    def keep_until_sent(self, id_: int) -> None:
        """Keeps only the unsent report of a settled lease: another attempt may follow, so it is
        sent before the settle.
        """
        self._checkpoints.pop(id_, None)
        self._finished.pop(id_, None)

    def repeat_checkpoints(self) -> None:
        """Queues finished phases and the newest checkpoints again for a new stream: they may have
        been lost with the old one.
        """
        known = {id(item) for items in self._finished.values() for item in items}
        settled = [item for item in self._phases if id(item) not in known]
        self._phases = settled + [item for items in self._finished.values() for item in items]
        for id_, (delivery, checkpoint) in list(self._checkpoints.items()):
            self.add(id_, delivery, checkpoint=checkpoint)

    def forget_waiting(self) -> None:
        """Drops all reports, because the server refused one."""
        self._waiting.clear()
        self._pieces.clear()
        self._checkpoints.clear()
        self._phases.clear()
        self._finished.clear()
