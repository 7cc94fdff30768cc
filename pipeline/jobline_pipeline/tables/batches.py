"""Gold `batches`: how far each batch of jobs is, how it went, and its stragglers."""

from __future__ import annotations

from jobline_pipeline.sql import Rows, dialect_of, query, share
from jobline_pipeline.tables.table import DOUBLE, LONG, LONGS, STRING, TIME, Column, Table

# A straggler took this many times as long as half of the jobs of its batch.
STRAGGLER = 3.0
STRAGGLERS_SHOWN = 10

TABLE = Table(
    name="batches",
    layer="gold",
    what="One row per batch of which a job was pushed.",
    columns=(
        Column("batch_id", LONG, "The batch."),
        Column("queues", STRING, "The queues of its jobs, sorted, with commas between."),
        Column("jobs", LONG, "Jobs pushed into it."),
        Column("ended", LONG, "Of these, ended."),
        Column("completed", LONG, "Of these, completed."),
        Column("progress", DOUBLE, "The share that ended."),
        Column("first_pushed_at", TIME, "The first push."),
        Column("last_ended_at", TIME, "The last end so far."),
        Column("total_p50_ms", DOUBLE, "The median time from push to end."),
        Column("total_max_ms", DOUBLE, "The longest."),
        Column("straggler_count", LONG, f"Jobs that took over {STRAGGLER:g} times the median."),
        Column("stragglers", LONGS, f"The slowest of them, up to {STRAGGLERS_SHOWN}."),
    ),
    key=("batch_id",),
)


def make(pushed: Rows, jobs: Rows) -> Rows:
    """Takes `events` that pushed members of batches, and `jobs`: all members of these batches."""
    say = dialect_of(pushed)
    return TABLE.made(
        f"""
        WITH sums AS (
          SELECT
            batch_id,
            {say.words("queue")} AS queues,
            count(*) AS jobs,
            count(ended_at) AS ended,
            count_if(outcome = 'completed') AS completed,
            min(pushed_at) AS first_pushed_at,
            max(ended_at) AS last_ended_at,
            percentile_cont(0.5) WITHIN GROUP (ORDER BY total_ms) AS total_p50_ms,
            max(total_ms) AS total_max_ms
          FROM {{members}} AS members
          GROUP BY batch_id
        ),
        slow AS (
          SELECT
            members.batch_id,
            count(*) AS straggler_count,
            {say.greatest("members.total_ms", "members.job_id", STRAGGLERS_SHOWN)} AS stragglers
          FROM {{members}} AS members
          JOIN sums ON sums.batch_id = members.batch_id
          WHERE members.total_ms > sums.total_p50_ms * {STRAGGLER:e}
          GROUP BY members.batch_id
        )
        SELECT
          sums.*,
          {share("sums.ended", "sums.jobs")} AS progress,
          coalesce(slow.straggler_count, 0) AS straggler_count,
          coalesce(slow.stragglers, {say.array()}) AS stragglers
        FROM sums
        LEFT JOIN slow ON slow.batch_id = sums.batch_id
        """,
        members=_members(pushed, jobs),
    )


def _members(pushed: Rows, jobs: Rows) -> Rows:
    """Returns each job that was pushed into a batch, with its last end if it has one."""
    return query(
        """
        SELECT
          pushed.batch_id, pushed.job_id, pushed.queue, pushed.`at` AS pushed_at,
          ends.outcome, ends.ended_at, ends.total_ms
        FROM {pushed} AS pushed
        LEFT JOIN (
          SELECT
            job_id,
            max_by(outcome, `offset`) AS outcome,
            max_by(ended_at, `offset`) AS ended_at,
            max_by(total_ms, `offset`) AS total_ms
          FROM {jobs} AS jobs
          WHERE batch_id IS NOT NULL
          GROUP BY job_id
        ) AS ends ON ends.job_id = pushed.job_id
        WHERE pushed.batch_id IS NOT NULL AND pushed.event = 'pushed'
        """,
        pushed=pushed,
        jobs=jobs,
    )
