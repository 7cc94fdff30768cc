"""What a report says, as plain values: lists of rows, each a dictionary."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jobline_pipeline.report import moments
from jobline_pipeline.report.capacity_check import replayed
from jobline_pipeline.views import create_views

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobline_pipeline.store import Store

Rows = list[dict[str, Any]]
# Rows of a list that is cut to its most important ones.
SHOWN = 12
# Versions with fewer attempts are not compared: a few failures would be a large share.
COMPARED_MIN = 100

_SKETCHED = ", ".join(
    f"{moments.merged_quantile(f'{time}_sketch', rank)} AS {time}_{name}_ms"
    for time in ("wait", "run", "total")
    for name, rank in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
)

QUESTIONS: dict[str, str] = {
    "totals": """
        SELECT sum(opened) AS opened, sum(ended) AS ended, sum(completed) AS completed,
               sum(failed) AS failed, sum(dead) AS dead, sum(cancelled) AS cancelled,
               (SELECT count(*) FROM open_jobs) AS open
        FROM queue_minutes""",
    "queues": f"""
        SELECT queue, sum(opened) AS opened, sum(completed) AS completed, sum(failed) AS failed,
               sum(dead) AS dead, {_SKETCHED}
        FROM queue_minutes GROUP BY queue ORDER BY opened DESC, queue""",
    "open_jobs": """
        SELECT queue, count(*) AS open, min(opened_at) AS oldest,
               count_if(run_at > opened_at) AS delayed
        FROM open_jobs GROUP BY queue ORDER BY open DESC, queue""",
    "errors": f"""
        SELECT failures, share, dead, message, error_types, queues, messages, first_at, last_at,
               example
        FROM error_groups ORDER BY failures DESC, message LIMIT {SHOWN}""",
    "versions": f"""
        SELECT new.queue, new.name, old.worker_version AS from_version, new.worker_version,
               old.failure_rate AS failure_rate_before, new.failure_rate,
               old.run_p95_ms AS run_p95_before_ms, new.run_p95_ms, new.attempts
        FROM version_comparison new JOIN version_comparison old
          ON new.queue = old.queue AND new.name <=> old.name AND old.first_at < new.first_at
        WHERE old.attempts >= {COMPARED_MIN} AND new.attempts >= {COMPARED_MIN}
        ORDER BY greatest(new.failure_rate / greatest(old.failure_rate, 0.001D),
                          new.run_p95_ms / greatest(old.run_p95_ms, 0.001D)) DESC,
                 new.queue, new.name
        LIMIT {SHOWN}""",
    "workers": f"""
        SELECT worker, max_by(worker_version, hour) AS worker_version, sum(attempts) AS attempts,
               sum(failed) / sum(attempts) AS failure_rate, sum(stalled) AS stalled,
               max(busy_share) AS busy_share_max
        FROM workers GROUP BY worker ORDER BY failure_rate DESC, worker LIMIT {SHOWN}""",
    "fairness": """
        SELECT queue, avg(jain) AS jain, max(groups) AS groups, max(run_share) AS run_share_max,
               max_by(`group`, run_share) AS busiest_group, max(wait_max_ms) AS wait_max_ms
        FROM fairness GROUP BY queue ORDER BY jain, queue""",
    "flows": f"""
        SELECT queue, name, count(*) AS flows, percentile(total_ms, 0.95D) AS total_p95_ms,
               avg(run_share) AS run_share, avg(slack_ms) AS slack_ms,
               mode(critical_name) AS critical_name
        FROM flows GROUP BY queue, name ORDER BY total_p95_ms DESC, queue, name LIMIT {SHOWN}""",
    "batches": f"""
        SELECT batch_id, queues, jobs, progress, completed, total_p50_ms, total_max_ms,
               straggler_count
        FROM batches ORDER BY progress, straggler_count DESC, batch_id LIMIT {SHOWN}""",
    "slo": """
        SELECT objective, queue, share, sum(measured) AS measured, sum(bad) AS bad,
               1 - sum(bad) / sum(measured) AS kept,
               sum(bad) / sum(measured) / (1 - share) AS burn_rate,
               count_if(bad > 0) AS minutes_with_bad
        FROM slo GROUP BY objective, queue, share ORDER BY burn_rate DESC, objective""",
    "capacity": """
        SELECT queue, max(offered) AS offered_max, max(workers_needed) AS workers_needed_max,
               max_by(hour, workers_needed) AS busiest_hour, max(workers_seen) AS workers_seen_max,
               max(wait_p99_ms) AS wait_p99_max_ms
        FROM capacity GROUP BY queue ORDER BY workers_needed_max DESC, queue""",
    "audit": f"""
        SELECT principal, event, sum(jobs) AS jobs, count(DISTINCT operation_id) AS operations,
               max(last_at) AS last_at
        FROM audit GROUP BY principal, event ORDER BY jobs DESC, principal, event LIMIT {SHOWN}""",
    "files": """
        SELECT status, count(*) AS files, sum(rows) AS rows, sum(rows_apart) AS rows_apart
        FROM files GROUP BY status ORDER BY status""",
    "bad_files": f"""
        SELECT path, reason, rows_apart FROM files WHERE reason IS NOT NULL
        ORDER BY path LIMIT {SHOWN}""",
}


def collect(store: Store, tell: Callable[[str], None]) -> dict[str, Rows]:
    """Asks all questions; returns question → rows. Times are ISO 8601, UTC.

    Besides `QUESTIONS` there are `period`, one row or none if there are no events, and `moments`,
    what happened in each span of the period.
    """
    create_views(store)
    answers: dict[str, Rows] = {}

    def ask(name: str, question: str) -> None:
        tell(f"report: {name.replace('_', ' ')}")
        answers[name] = [_plain(row.asDict()) for row in store.spark.sql(question).collect()]

    found = moments.period(store.spark)
    answers["period"] = [] if found is None else [_plain(asdict(found))]
    answers["moments"] = []
    if found is not None:
        ask("moments", moments.question(found.grain))
    for name, question in QUESTIONS.items():
        ask(name, question)
    tell("report: checking capacity")
    checked = replayed(store.spark)
    for row in answers["capacity"]:
        row.update(checked.get(row["queue"], {"replayed": 0, "replayed_late_share": None}))
    return answers


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat() + "Z" if value.tzinfo is None else value.isoformat()
    return round(value, 4) if isinstance(value, float) else value
