"""Loader: makes the queues, lots, jobs and keys of a shard from the items of a checkpoint.

Items come by kind, in the order of `ItemKind`; each page of a kind is passed to the `load` of its
row in `KINDS`. Ready jobs are put into their lanes once all items are there, in the order in which
they became ready.

An item with a wrong checksum is reported and left out; `damaged` is true then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from operator import attrgetter, ge

from google.protobuf.message import DecodeError

from jobline_server.engine.apply.unique import free_orphans
from jobline_server.engine.expiring import expect_expiry
from jobline_server.engine.job import Job
from jobline_server.engine.lane import place_of
from jobline_server.engine.lot import Lot
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.shard import Shard
from jobline_server.storage.kinds import KINDS
from jobline_server.storage.kinds.loading import Loading, Report, SetApart
from jobline_server.storage.store import BadRow, DataLoss, ItemRow

_KINDS = {int(row.kind): row for row in KINDS}


class Loader(Loading):
    """Fills a shard. Call `take` for each page of items, then `build_lanes`."""

    def __init__(self, shard: Shard, report: Report) -> None:
        super().__init__(shard, report)
        self.damaged = False

    def take(self, page: Sequence[ItemRow | BadRow]) -> None:
        """Loads items. Raises `DataLoss` for an item that has a right checksum and cannot be
        decoded: a newer version wrote it.
        """
        good: list[ItemRow] = []
        for row in page:
            if isinstance(row, ItemRow):
                good.append(row)
            else:
                self._set_apart(row)
        for kind, rows in groupby(good, attrgetter("kind")):
            at = _At(rows)
            try:
                known = _KINDS.get(kind)
                load = _refuse if known is None else known.load
                load(self, at.rows())
            except (DecodeError, LookupError, ValueError) as error:
                what = f"{_name_of(kind)} {at.key}"
                message = f"shard {self.shard.number}: {what} cannot be understood"
                raise DataLoss(message) from error

    def build_lanes(self) -> None:
        """Puts ready jobs into their lanes, after all items are loaded. Jobs that wait for one that
        was set apart go on.
        """
        shard = self.shard
        for kind in KINDS:
            self.damaged |= kind.end_loading(self)
        for queue, items in self.ready.items():
            orders = [item.order for item in items]
            if any(map(ge, orders, islice(orders, 1, None))):
                items.sort(key=place_of)
            queue.put_all(items, [one.waiting() if isinstance(one, Lot) else 1 for one in items])
            shard.next_order = max(shard.next_order, items[-1].order)
            shard.front_order = min(shard.front_order, items[0].order)
        self.ready.clear()
        live: Iterable[Lot | Job] = chain(shard.jobs.every(), shard.lots.lots.every())
        for item in live:
            if item.options.rules is not NO_RULES:
                expect_expiry(shard, item)
                if item.options.rules.batch_id:
                    members = item.remaining if isinstance(item, Lot) else 1
                    shard.batches.count_live(item.options.rules.batch_id, members)
                if item.options.rules.webhook:
                    shard.load.tells_webhooks = True
        if shard.jobs:
            shard.use_ids(shard.jobs.highest(), 1)
        free_orphans(shard)

    def _set_apart(self, row: BadRow) -> None:
        self.damaged = True
        known = _KINDS.get(row.kind)
        if known is not None:
            known.note_damaged(self, row.key)
        what = f"{_name_of(row.kind)} {row.key}"
        self.report(SetApart(row.shard, what, "its checksum is wrong"))


class _At:
    """An iterator over rows, and the key of the current one."""

    __slots__ = ("_rows", "key")

    def __init__(self, rows: Iterable[ItemRow]) -> None:
        self._rows = rows
        self.key = 0

    def rows(self) -> Iterator[ItemRow]:
        for row in self._rows:
            self.key = row.key
            yield row


def _refuse(_loading: Loading, rows: Iterator[ItemRow]) -> None:
    """Raises LookupError at the first of these rows: only a newer version knows their kind."""
    for row in rows:
        raise LookupError(row.kind)


def _name_of(kind: int) -> str:
    known = _KINDS.get(kind)
    return f"{kind if known is None else known.kind.name.lower()} item"
