"""Makes the gold tables again, where a batch touched them.

Each table is made from `events`, `attempts` and `jobs` of whole minutes or hours, with what earlier
batches brought for these, and put in the place of what was there. So the order of batches does not
matter, and a second time changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Generic

from jobline_pipeline.sql import Rows, query
from jobline_pipeline.store import Batch, Tables
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
from jobline_pipeline.windows import Range, predicate, touched

# Members of a flow, or of a batch, that ended longer before its last one are not looked for.
LOOK_BACK_US = 7 * 24 * 3_600_000_000
# Tables that are made at the same time: one computes while another plans or commits.
_WRITERS = 3

Step = tuple[str, Callable[[], None]]


class Gold(Generic[Rows]):
    """The gold tables of one batch, whose events lie in `spans` (µs, both ends included)."""

    def __init__(self, store: Tables[Rows], batch: Batch, spans: Iterable[tuple[int, int]]) -> None:
        self._store = store
        self._batch = batch
        self._spans = list(spans)

    def steps(self, objectives: Sequence[Objective]) -> list[Step]:
        """Returns what is to be done; the order matters only for the time that all take.

        The longest come first. Spark makes part of `errors` always, while DuckDB makes others.
        """
        made = [
            (
                queue_minutes.TABLE,
                lambda: queue_minutes.make(self._of(queue_minutes.TABLE, events.TABLE)),
            ),
            (capacity.TABLE, lambda: capacity.make(self._of(capacity.TABLE, attempts.TABLE))),
            (versions.TABLE, lambda: versions.make(self._of(versions.TABLE, attempts.TABLE))),
            (fairness.TABLE, lambda: fairness.make(self._of(fairness.TABLE, attempts.TABLE))),
            (workers.TABLE, lambda: workers.make(self._of(workers.TABLE, attempts.TABLE))),
            (audit.TABLE, lambda: audit.make(self._of(audit.TABLE, events.TABLE))),
        ]
        if objectives:
            made.append((slo.TABLE, lambda: self._slo(objectives)))
        steps = [(table.name, self._replacing(table, make)) for table, make in made]
        others = [(flows, self._flows), (batches, self._batches)]
        named = [(module.TABLE.name, make) for module, make in others]
        return [(errors.TABLE.name, self._errors), steps[0], *named, *steps[1:]]

    def _of(self, table: Table, source: Table) -> Rows:
        """The rows of a source table that lie in the minutes or hours touched of `table`."""
        return self._within(source, self._ranges(table))

    def _ranges(self, table: Table) -> list[Range]:
        return touched(self._spans, table.grain)

    def _within(self, source: Table, ranges: Sequence[Range]) -> Rows:
        time = "at" if source is events.TABLE else "ended_at"
        return self._store.within(source, time, ranges)

    def _replacing(self, table: Table, make: Callable[[], Rows]) -> Callable[[], None]:
        def replace() -> None:
            self._store.replace(table, make(), self._ranges(table), self._batch)

        return replace

    def _looking_back(self) -> list[Range]:
        ranges = self._ranges(flows.TABLE)
        return [(ranges[0][0] - LOOK_BACK_US, ranges[-1][1])]

    def _flows(self) -> None:
        back, ranges = self._looking_back(), self._ranges(flows.TABLE)
        waiting = self._within(events.TABLE, back).filter("depends_on IS NOT NULL")
        ended = self._within(jobs.TABLE, back)
        with ExitStack() as stack:

            def keep(rows: Rows) -> Rows:
                return stack.enter_context(self._store.kept(rows))[0]

            made = flows.make(ended, waiting, keep)
            made = made.filter(predicate("ended_at", ranges))
            self._store.replace(flows.TABLE, made, ranges, self._batch)

    def _slo(self, objectives: Sequence[Objective]) -> Rows:
        return slo.make(
            self._of(slo.TABLE, attempts.TABLE), self._of(slo.TABLE, jobs.TABLE), objectives
        )

    def _batches(self) -> None:
        touched_now = self._within(events.TABLE, self._ranges(batches.TABLE))
        ids = query(
            "SELECT DISTINCT batch_id FROM {events} AS events WHERE batch_id IS NOT NULL",
            events=touched_now,
        )
        with self._store.kept(ids) as (now, count):
            if count or not self._store.exists(batches.TABLE):
                pushed, ended = (
                    query(
                        """
                        SELECT * FROM {source} AS source
                        WHERE batch_id IN (SELECT batch_id FROM {now} AS now)
                        """,
                        source=self._within(source, self._looking_back()),
                        now=now,
                    )
                    for source in (events.TABLE, jobs.TABLE)
                )
                self._store.upsert(batches.TABLE, batches.make(pushed, ended), self._batch)

    def _errors(self) -> None:
        rows = errors.make(self._of(errors.TABLE, attempts.TABLE))
        self._store.replace(errors.TABLE, rows, self._ranges(errors.TABLE), self._batch)
        groups = error_groups.make(self._store.frame(errors.TABLE))
        self._store.overwrite(error_groups.TABLE, groups, self._batch)


def make_all(steps: Sequence[Step], tell: Callable[[str], None]) -> None:
    """Makes tables; `tell` hears of each that is made. The first failure is raised."""

    def run(step: Step) -> None:
        name, make = step
        make()
        tell(name)

    with ThreadPoolExecutor(_WRITERS) as pool:
        for done in [pool.submit(run, step) for step in steps]:
            done.result()
