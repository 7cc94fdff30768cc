"""What the server counted itself, beside what the tables say of the exported history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobline import AsyncClient

# Gold for what it has, silver for attempts that failed: a lease that was lost is none.
_TOTALS = """
    SELECT q.queue, q.pushed, q.completed, coalesce(f.failed, 0) AS failed, q.dead, q.cancelled,
           coalesce(o.open, 0) AS open
    FROM (SELECT queue, sum(opened) AS pushed, sum(completed) AS completed, sum(dead) AS dead,
                 sum(cancelled) AS cancelled FROM queue_minutes GROUP BY queue) q
    LEFT JOIN (SELECT queue, count(*) AS failed FROM attempts
               WHERE outcome IN ('retrying', 'dead') GROUP BY queue) f ON f.queue = q.queue
    LEFT JOIN (SELECT queue, count(*) AS open FROM open_jobs GROUP BY queue) o
      ON o.queue = q.queue"""


@dataclass(frozen=True, slots=True)
class Totals:
    """Jobs of a queue; `failed` are attempts."""

    pushed: int
    completed: int
    failed: int
    dead: int
    cancelled: int
    open: int


@dataclass(frozen=True, slots=True)
class Difference:
    """A total that is not the same."""

    queue: str
    what: str
    server: int
    tables: int


async def of_server(client: AsyncClient, queues: Iterable[str]) -> dict[str, Totals]:
    """Returns what the server counted, by queue. Its totals begin when the server starts."""
    found = {}
    for name in queues:
        queue = await client.queues.get(name)
        counts = queue.counts
        found[name] = Totals(
            pushed=queue.pushed_total,
            completed=queue.completed_total,
            failed=queue.failed_total,
            dead=counts.dead,
            cancelled=counts.cancelled + counts.expired,
            open=counts.scheduled + counts.blocked + counts.ready + counts.active,
        )
    return found


def of_tables(spark: SparkSession) -> dict[str, Totals]:
    """Returns what the tables say, by queue. Needs their views."""
    rows = (row.asDict() for row in spark.sql(_TOTALS).collect())
    return {row.pop("queue"): Totals(**row) for row in rows}


def differences(server: Mapping[str, Totals], tables: Mapping[str, Totals]) -> list[Difference]:
    """Returns every total that is not the same in both."""
    nothing = Totals(0, 0, 0, 0, 0, 0)
    return [
        Difference(queue, field.name, one, other)
        for queue in sorted({*server, *tables})
        for field in fields(Totals)
        if (one := getattr(server.get(queue, nothing), field.name))
        != (other := getattr(tables.get(queue, nothing), field.name))
    ]
