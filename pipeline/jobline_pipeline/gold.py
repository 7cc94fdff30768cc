"""Makes the gold tables again, where a batch touched them.

Each table is made from `events`, `attempts` and `jobs` of whole minutes or hours, with what earlier
batches brought for these, and put in the place of what was there. So the order of batches does not
matter, and a second time changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from jobline_pipeline.store import Batch, Store
from jobline_pipeline.tables import (
    attempts,
    audit,
    batches,
    capacity,
    error_groups,
    errors,
    events,
    fairness,
    flows,
    jobs,
    queue_minutes,
    slo,
    versions,
    workers,
)
from jobline_pipeline.tables.slo import Objective
from jobline_pipeline.tables.table import Table
from jobline_pipeline.windows import Range, is_within, touched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Members of a flow, or of a batch, that ended longer before its last one are not looked for.
LOOK_BACK_US = 7 * 24 * 3_600_000_000
# Tables that are made at the same time: one computes while another plans or commits.
_WRITERS = 3

Step = tuple[str, Callable[[], None]]


class Gold:
    """The gold tables of one batch, whose events lie in `spans` (µs, both ends included)."""

    def __init__(self, store: Store, batch: Batch, spans: Iterable[tuple[int, int]]) -> None:
        self._store = store
        self._batch = batch
        self._spans = list(spans)

    def steps(self, objectives: Sequence[Objective]) -> list[Step]:
        """Returns what is to be done, the longest first; the order does not matter else."""
        made = [
            (
                queue_minutes.TABLE,
                lambda: queue_minutes.make(self._of(queue_minutes.TABLE, events)),
            ),
            (capacity.TABLE, lambda: capacity.make(self._of(capacity.TABLE, attempts))),
            (versions.TABLE, lambda: versions.make(self._of(versions.TABLE, attempts))),
            (fairness.TABLE, lambda: fairness.make(self._of(fairness.TABLE, attempts))),
            (workers.TABLE, lambda: workers.make(self._of(workers.TABLE, attempts))),
            (audit.TABLE, lambda: audit.make(self._of(audit.TABLE, events))),
        ]
        if objectives:
            made.append((slo.TABLE, lambda: self._slo(objectives)))
        steps = [(table.name, self._replacing(table, make)) for table, make in made]
        others = [(flows, self._flows), (batches, self._batches), (errors, self._errors)]
        named = [(module.TABLE.name, make) for module, make in others]
        return [steps[0], *named, *steps[1:]]

    def _of(self, table: Table, source: object) -> DataFrame:
        """The rows of a source table that lie in the minutes or hours touched of `table`."""
        return self._within(source.TABLE, self._ranges(table))  # type: ignore[attr-defined]

    def _ranges(self, table: Table) -> list[Range]:
        return touched(self._spans, table.grain)

    def _within(self, source: Table, ranges: Sequence[Range]) -> DataFrame:
        time = "at" if source is events.TABLE else "ended_at"
        return self._store.read(source).where(is_within(time, ranges, "date"))

    def _replacing(self, table: Table, make: Callable[[], DataFrame]) -> Callable[[], None]:
        def replace() -> None:
            self._store.replace(table, make(), self._ranges(table), self._batch)

        return replace

    def _looking_back(self) -> list[Range]:
        ranges = self._ranges(flows.TABLE)
        return [(ranges[0][0] - LOOK_BACK_US, ranges[-1][1])]

    def _flows(self) -> None:
        back, ranges = self._looking_back(), self._ranges(flows.TABLE)
        waiting = self._within(events.TABLE, back).where(F.col("depends_on").isNotNull())
        ended = self._within(jobs.TABLE, back)
        with ExitStack() as stack:

            def keep(rows: DataFrame) -> DataFrame:
                return stack.enter_context(_known(rows))[0]

            made = flows.make(ended, waiting.select("job_id", "depends_on"), keep)
            made = made.where(is_within("ended_at", ranges))
            self._store.replace(flows.TABLE, made, ranges, self._batch)

    def _slo(self, objectives: Sequence[Objective]) -> DataFrame:
        return slo.make(self._of(slo.TABLE, attempts), self._of(slo.TABLE, jobs), objectives)

    def _batches(self) -> None:
        ranges = self._ranges(batches.TABLE)
        back = self._looking_back()
        in_batch = F.col("batch_id").isNotNull()
        touched_now = self._within(events.TABLE, ranges).where(in_batch).select("batch_id")
        pushed = self._within(events.TABLE, back).where(in_batch & (F.col("event") == "pushed"))
        ended = self._within(jobs.TABLE, back).where(in_batch)
        with _known(touched_now.distinct()) as (now, count):
            if count or not self._store.exists(batches.TABLE):
                made = batches.make(
                    pushed.join(now, on="batch_id", how="left_semi"),
                    ended.join(now, on="batch_id", how="left_semi"),
                )
                self._store.upsert(batches.TABLE, made, self._batch)

    def _errors(self) -> None:
        rows = errors.make(self._of(errors.TABLE, attempts))
        self._store.replace(errors.TABLE, rows, self._ranges(errors.TABLE), self._batch)
        groups = error_groups.make(self._store.read(errors.TABLE))
        self._store.overwrite(error_groups.TABLE, groups, self._batch)


@contextmanager
def _known(rows: DataFrame) -> Iterator[tuple[DataFrame, int]]:
    """Computes rows once, and keeps them: so Spark knows how many they are when it plans a join.

    It would shuffle the whole other side otherwise, for the few that are found.
    """
    kept = rows.persist()
    try:
        yield kept, kept.count()
    finally:
        kept.unpersist()


def make_all(steps: Sequence[Step], tell: Callable[[str], None]) -> None:
    """Makes tables; `tell` hears of each that is made. The first failure is raised."""

    def run(step: Step) -> None:
        name, make = step
        make()
        tell(name)

    with ThreadPoolExecutor(_WRITERS) as pool:
        for done in [pool.submit(run, step) for step in steps]:
            done.result()
