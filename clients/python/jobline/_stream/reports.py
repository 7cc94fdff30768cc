"""Reports on their way: progress, words and checkpoints of jobs that run. Pure.

What is said faster than it can be sent is said once. Nothing confirms a report, so the newest
checkpoint of each lease is kept while the lease is, and said again on a new stream.
"""

from __future__ import annotations

from jobline.v1 import job_service_pb2 as pb

# Reports of one frame; the rest follow in the next.
ITEMS_MAX = 10_000
# Checkpoints of one frame, in bytes; the one that goes over it still goes.
CHECKPOINT_BYTES_MAX = 2 << 20


class Reports:
    """All reports of one session that have not been sent."""

    def __init__(self) -> None:
        self._waiting: dict[int, pb.ExtendItem] = {}
        self._checkpoints: dict[int, tuple[int, bytes]] = {}

    def __bool__(self) -> bool:
        """Something has not been sent yet."""
        return bool(self._waiting)

    def add(
        self,
        id_: int,
        delivery: int,
        *,
        progress: float | None = None,
        message: str | None = None,
        checkpoint: bytes | None = None,
    ) -> None:
        """Takes a report; it replaces what was not sent yet, field by field."""
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

    def take(self) -> list[pb.ExtendItem]:
        """As many reports as one frame may carry."""
        items: list[pb.ExtendItem] = []
        total = 0
        while self._waiting and total < CHECKPOINT_BYTES_MAX and len(items) < ITEMS_MAX:
            item = self._waiting.pop(next(iter(self._waiting)))
            total += len(item.checkpoint)
            items.append(item)
        return items

    def forget(self, id_: int) -> None:
        """The lease is gone, or the job done: nobody wants to know any more."""
        if self._waiting or self._checkpoints:
            self._waiting.pop(id_, None)
            self._checkpoints.pop(id_, None)

    def keep_until_sent(self, id_: int) -> None:
        """The lease is settled, and another attempt may follow: what waits goes before the
        settle.
        """
        self._checkpoints.pop(id_, None)

    def repeat_checkpoints(self) -> None:
        """A new stream: the newest checkpoints may have been lost with the old one."""
        for id_, (delivery, checkpoint) in list(self._checkpoints.items()):
            self.add(id_, delivery, checkpoint=checkpoint)

    def forget_waiting(self) -> None:
        """The server refused something: nothing of it is said again."""
        self._waiting.clear()
        self._checkpoints.clear()
