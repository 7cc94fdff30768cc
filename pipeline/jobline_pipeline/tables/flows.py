"""Gold `flows`: how long a flow of jobs took, and which of its jobs it waited for.

A job waits for its children and for the jobs that it depends on. Of those, the one that ended last
is *critical*: had it been faster, the waiting job would have begun earlier. The critical path goes
from the root of a flow to its critical job, to the critical job of that one, and so on. The *slack*
of a flow is how much faster the critical job of the root could have been before another one is.
"""

from __future__ import annotations

from collections.abc import Callable

from jobline_pipeline.sql import Rows, dialect_of, query, share
from jobline_pipeline.tables.table import DOUBLE, INT, LONG, LONGS, STRING, TIME, Column, Table

# Jobs of a critical path beyond this many are not followed.
PATH_MAX = 5

TABLE = Table(
    name="flows",
    layer="gold",
    what="One row per root of a flow that ended: a job that waited for others, and no job for it.",
    columns=(
        Column("job_id", LONG, "The root."),
        Column("queue", STRING, "Its queue."),
        Column("name", STRING, "Its name."),
        Column("ended_at", TIME, "When it ended."),
        Column("outcome", STRING, "How it ended."),
        Column("waits_for", LONG, "How many jobs it waited for itself."),
        Column("total_ms", DOUBLE, "From its push to its end."),
        Column("critical_path", LONGS, f"The root, its critical job, and so on; up to {PATH_MAX}."),
        Column("path_jobs", INT, "How many jobs that are."),
        Column("path_run_ms", DOUBLE, "The run time of the last hand-outs on the path."),
        Column("run_share", DOUBLE, "path_run_ms / total_ms: the rest was waiting and retries."),
        Column("slack_ms", DOUBLE, "How much earlier than the critical job the next one ended."),
        Column("critical_name", STRING, "The name of the root's critical job."),
    ),
    key=("job_id",),
    window="ended_at",
)


def _same(rows: Rows) -> Rows:
    return rows


def make(jobs: Rows, pushed: Rows, keep: Callable[[Rows], Rows] = _same) -> Rows:
    """Takes `jobs` (all that the flows may have) and `events` that have `depends_on`.

    `keep` is given what is used several times, so that it may compute that once.
    """
    edges = keep(_edges(jobs, pushed))
    ended = keep(_ended(jobs, edges))
    links = keep(_links(edges, ended))
    steps = range(2, PATH_MAX)
    joins = "\n".join(
        f"LEFT JOIN {{links}} AS link_{n} ON link_{n}.job_id = link_{n - 1}.critical_id"
        for n in steps
    )
    say = dialect_of(jobs)
    critical = ("link_1.job_id", *(f"link_{n}.critical_id" for n in (1, *steps)))
    run_ms = " + ".join(f"coalesce(link_{n}.critical_run_ms, 0)" for n in (1, *steps))
    return TABLE.made(
        f"""
        WITH paths AS (
          SELECT
            link_1.job_id,
            link_1.waits_for,
            link_1.slack_ms,
            link_1.critical_name,
            {say.without_nulls(say.array(*critical))} AS critical_path,
            {run_ms} AS awaited_run_ms
          FROM {{links}} AS link_1
          {joins}
        )
        SELECT
          *,
          cardinality(critical_path) AS path_jobs,
          {share("path_run_ms", "total_ms")} AS run_share
        FROM (
          SELECT paths.*, ended.queue, ended.name, ended.ended_at, ended.outcome, ended.total_ms,
            coalesce(ended.run_ms, 0) + paths.awaited_run_ms AS path_run_ms
          FROM paths
          JOIN {{ended}} AS ended ON ended.job_id = paths.job_id
          ANTI JOIN {{edges}} AS edges ON edges.awaited_id = paths.job_id
        ) AS roots
        """,
        links=links,
        ended=ended,
        edges=edges,
    )


def _edges(jobs: Rows, pushed: Rows) -> Rows:
    """Returns (job_id, awaited_id): who waits for whom."""
    return query(
        """
        SELECT parent_id AS job_id, job_id AS awaited_id
        FROM {jobs} AS jobs
        WHERE parent_id IS NOT NULL
        UNION
        SELECT job_id, explode(depends_on) AS awaited_id
        FROM {pushed} AS pushed
        WHERE depends_on IS NOT NULL
        """,
        jobs=jobs,
        pushed=pushed,
    )


def _ended(jobs: Rows, edges: Rows) -> Rows:
    """Returns the last end of each job that is in a flow: few, as a rule."""
    names = ("queue", "name", "ended_at", "outcome", "total_ms", "run_ms")
    last = ", ".join(f"max_by({name}, `offset`) AS {name}" for name in names)
    return query(
        f"""
        SELECT job_id, {last}
        FROM {{jobs}} AS jobs
        WHERE job_id IN (
          SELECT job_id FROM {{edges}} AS edges UNION SELECT awaited_id FROM {{edges}} AS edges
        )
        GROUP BY job_id
        """,
        jobs=jobs,
        edges=edges,
    )


def _links(edges: Rows, ended: Rows) -> Rows:
    """Returns a row per waiting job: its critical job, and by how much that one was the last."""
    return query(
        """
        SELECT
          job_id,
          waits_for,
          awaited_id AS critical_id,
          name AS critical_name,
          coalesce(run_ms, 0) AS critical_run_ms,
          (unix_micros(ended_at) - unix_micros(next_at)) / 1e3 AS slack_ms
        FROM (
          SELECT
            edges.job_id, edges.awaited_id, ended.name, ended.run_ms, ended.ended_at,
            count(*) OVER (PARTITION BY edges.job_id) AS waits_for,
            row_number() OVER (
              PARTITION BY edges.job_id ORDER BY ended.ended_at DESC, edges.awaited_id DESC
            ) AS place,
            lead(ended.ended_at) OVER (
              PARTITION BY edges.job_id ORDER BY ended.ended_at DESC, edges.awaited_id DESC
            ) AS next_at
          FROM {edges} AS edges
          JOIN {ended} AS ended ON ended.job_id = edges.awaited_id
        ) AS awaited
        WHERE place = 1
        """,
        edges=edges,
        ended=ended,
    )
