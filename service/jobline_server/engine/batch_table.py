"""The batches of a shard, and what it has to tell the home shards of others; see `batches`."""

from __future__ import annotations

from jobline_server.engine.batches import Batch, EndCounts, MemberEnd
from jobline_server.engine.changes import KindChanges
from jobline_server.engine.values import shard_of


class BatchTable:
    """The batches of a shard, and its members of any batch.

    `unsent` has what became of members here whose batch is at home elsewhere, until that is sent.
    """

    __slots__ = (
        "_changes",
        "by_request",
        "children",
        "completed",
        "due",
        "joining",
        "live",
        "number",
        "records",
        "unsent",
    )

    def __init__(self, number: int, changes: KindChanges[set[int]]) -> None:
        self.number = number
        self.records: dict[int, Batch] = {}
        self.unsent: dict[int, EndCounts] = {}
        # ----
        self._changes = changes
        self.live: dict[int, int] = {}
        """Live members in this shard, by batch: what facts that end jobs need to test, cheaply."""
        self.joining: dict[int, int] = {}
        """New members since the last `take_joining`, of batches that are at home elsewhere."""
        self.due: dict[int, None] = {}
        """Batches of which callbacks are to be pushed."""
        self.completed: dict[int, None] = {}
        """Those that are complete, in that order."""
        self.by_request: dict[str, int] = {}
        self.children: dict[int, dict[int, None]] = {}

    def has_work(self) -> bool:
        """Returns whether callbacks are due, or counts are to be sent."""
        return bool(self.due or self.unsent)

    def is_home(self, batch_id: int) -> bool:
        """Returns whether this is the home shard of a batch."""
        return shard_of(batch_id) == self.number

    def unfinished(self) -> int:
        """Returns the number of batches that are not complete."""
        return len(self.records) - len(self.completed)

    def mark(self, batch_id: int) -> None:
        """Has the next checkpoint write a batch, or what is unsent of it."""
        self._changes.to_write.add(batch_id)

    def add(self, batch: Batch) -> None:
        """Adds a batch, new or from a checkpoint."""
        spec = batch.spec
        self.records[batch.id] = batch
        if spec.request_id:
            self.by_request[spec.request_id] = batch.id
        if spec.parent:
            self.children.setdefault(spec.parent, {})[batch.id] = None
        if batch.calls_due():
            self.due[batch.id] = None

    def remove(self, batch: Batch) -> None:
        """Removes a batch."""
        spec = batch.spec
        del self.records[batch.id]
        self.completed.pop(batch.id, None)
        self.due.pop(batch.id, None)
        self.children.pop(batch.id, None)
        if spec.request_id and self.by_request.get(spec.request_id) == batch.id:
            del self.by_request[spec.request_id]
        siblings = self.children.get(spec.parent)
        if siblings is not None:
            siblings.pop(batch.id, None)
            if not siblings:
                del self.children[spec.parent]
        self._changes.to_write.discard(batch.id)
        if batch.stored:
            self._changes.to_delete.append(batch.id)

    def count_live(self, batch_id: int, count: int) -> None:
        """Counts live members in this shard in, or out if `count` is negative."""
        left = self.live.get(batch_id, 0) + count
        if left > 0:
            self.live[batch_id] = left
        else:
            self.live.pop(batch_id, None)

    def note_unsent(self, batch_id: int, end: MemberEnd, count: int) -> None:
        """Counts ended members whose batch is at home elsewhere."""
        counts = self.unsent.get(batch_id)
        if counts is None:
            counts = self.unsent[batch_id] = EndCounts()
        counts.add(end, count)
        self.mark(batch_id)

    def forget_unsent(self, batch_id: int) -> None:
        """Removes what was sent."""
        counts = self.unsent.pop(batch_id)
        self._changes.to_write.discard(batch_id)
        if counts.stored:
            self._changes.to_delete.append(batch_id)

    def take_joining(self) -> dict[int, int]:
        """Removes and returns the new members of batches that are at home elsewhere."""
        joining, self.joining = self.joining, {}
        return joining

    def finish_loading(self) -> None:
        """Puts complete batches in order, once all are loaded."""
        complete = [batch for batch in self.records.values() if batch.completed_ms]
        complete.sort(key=lambda batch: (batch.completed_ms, batch.id))
        self.completed = {batch.id: None for batch in complete}
