"""Recovery: restores a shard to its last commit, from the items of a checkpoint and the journal
after it.

The steps, which `recover_shard` and its caller follow:

1. items are loaded (`loader`);
2. lanes are built, once all items are there;
3. the facts of the journal are applied, through the same `apply` as live ones;
4. the endings of step 3 are written to the ended store again (`take_endings`): it may have none,
   some or all of them before, and has all of them after;
5. `finish`, with the counts of the ended store: every lease gets its full time, and the shard is
   open.

Counts of ended jobs are not stored with a shard. Only the ended store knows what is kept: after
step 4 its counts are those of the live shard at its last commit.

If an item was set apart, the journal is applied in `salvage`'s small pieces, and those that do not
fit are reported too.

Recovery reads no clock and no file; the caller passes the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from google.protobuf.message import DecodeError

from jobline_server.engine.effects import Applied, Effect, endings_of
from jobline_server.engine.endings import Ending
from jobline_server.engine.entries import Fact
from jobline_server.engine.load import Load
from jobline_server.engine.shard import Shard
from jobline_server.engine.states import IllegalMove
from jobline_server.engine.values import JobState, Now
from jobline_server.storage.codec import UnknownFact, decode_batch
from jobline_server.storage.kinds.loading import Report, SetApart
from jobline_server.storage.loader import Loader
from jobline_server.storage.salvage import pieces_of, queues_of
from jobline_server.storage.store import (
    BadRow,
    DataLoss,
    ItemRow,
    JournalRow,
    ShardImage,
    Store,
)

__all__ = ["Recovery", "Report", "SetApart", "recover_shard"]


Witness = Callable[[int, Sequence[Applied], int], None]
"""Receives the facts of each journal row with its offset and the size of its blob. Not called if an
item was set apart: then the effects are not known.
"""


def _nobody(_offset: int, _happened: Sequence[Applied], _blob_bytes: int) -> None:
    """Ignores the rows."""


class Recovery:
    """Recovers one shard. Call `take_items` for each page, `take_journal` for each page,
    `take_endings` and `finish`, in this order.
    """

    def __init__(
        self, image: ShardImage, *, load: Load, report: Report, witness: Witness = _nobody
    ) -> None:
        self._image = image
        self._report = report
        self._witness = witness
        self._shard = Shard(image.row.shard, epoch=image.row.epoch, load=load)
        self._loader = Loader(self._shard, report)
        self._loaded = False
        self._endings: list[Ending] = []
        self.segments = self._loader.segments
        self.journal_bytes = 0

    def take_items(self, page: Sequence[ItemRow | BadRow]) -> None:
        """Loads items, in the order of their kinds. Raises `DataLoss`."""
        self._loader.take(page)

    def take_journal(self, page: Sequence[JournalRow]) -> None:
        """Applies the facts of journal rows, which the store has verified. Raises `DataLoss`."""
        self._end_items()
        replay = self._salvage if self._loader.damaged else self._shard.replay
        for row in page:
            try:
                facts = decode_batch(row.blob)
            except (DecodeError, UnknownFact, LookupError, ValueError) as error:
                message = f"shard {row.shard}: journal row {row.offset} cannot be understood"
                raise DataLoss(message) from error
            applied: list[Applied] = []
            try:
                for fact in facts:
                    effects = replay(fact, row.offset)
                    self._endings += endings_of(effects)
                    applied.append(Applied(fact, row.offset, effects))
            except (IllegalMove, LookupError) as error:
                message = f"shard {row.shard}: journal row {row.offset} does not fit: {error}"
                raise DataLoss(message) from error
            self._shard.next_offset = row.offset + 1
            self.journal_bytes += len(row.blob)
            if not self._loader.damaged:
                self._witness(row.offset, applied, len(row.blob))

    def take_endings(self) -> list[Ending]:
        """Returns the endings since the checkpoint, in order, for the ended store."""
        self._end_items()
        endings, self._endings = self._endings, []
        return endings

    def finish(self, ended: Mapping[str, Mapping[JobState, int]], now: Now) -> Shard:
        """Opens and returns the shard. `ended` has the ended store's counts by queue and state."""
        self._end_items()
        shard, row = self._shard, self._image.row
        shard.committed = row.offset
        shard.next_offset = row.offset + 1
        shard.next_sequence = max(shard.next_sequence, self._image.first_free_id_sequence)
        for session in [name for name, holder in shard.clocks.holders.items() if not holder.leases]:
            del shard.clocks.holders[session]
        for queue in shard.queues.values():
            if not queue.number:
                queue.number = shard.next_id()
                shard.use_ids(queue.number, 1)
            # All that the ended store has under this name counts as this queue's.
            queue.set_kept(ended.get(queue.name, {}))
            queue.born_id = 0
            queue.pushed_total = queue.completed_total = queue.failed_total = 0
            queue.touched_ms = now.wall_ms
        load = shard.load
        load.gone_pushed_total = load.gone_completed_total = load.gone_failed_total = 0
        shard.age.start(now)
        shard.restart_leases(now)
        shard.dependencies.find_ended(shard.state_of)
        return shard

    def _end_items(self) -> None:
        if not self._loaded:
            self._loaded = True
            self._loader.build_lanes()

    def _salvage(self, fact: Fact, offset: int) -> list[Effect]:
        effects: list[Effect] = []
        for queue in sorted(queues_of(fact)):
            self._loader.queue_of(queue)
        for piece in pieces_of(fact):
            try:
                effects += self._shard.replay(piece, offset)
            except (IllegalMove, LookupError) as error:
                what = f"a {type(piece).__name__} of journal row {offset}"
                self._report(SetApart(self._shard.number, what, str(error)))
        return effects


async def recover_shard(
    store: Store, image: ShardImage, *, load: Load, report: Report, witness: Witness = _nobody
) -> Recovery:
    """Does steps 1 to 3 for a shard that the store has just opened."""
    recovery = Recovery(image, load=load, report=report, witness=witness)
    async for items in store.items(image.row.shard):
        recovery.take_items(items)
    async for rows in store.journal(image.row.shard):
        recovery.take_journal(rows)
    return recovery
