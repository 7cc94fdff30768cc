"""The tables of the page: which columns they have, what these are called, how they are shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jobline_pipeline.report.shown import count, duration, moment, share, text


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. Neighbours with the same `above` share a heading; `is_bar`: a bar behind
    the number shows its part of the greatest; `is_wide`: it takes the room that is left.
    """

    name: str
    title: str
    form: Callable[[Any], str]
    above: str = ""
    is_bar: bool = False
    is_wide: bool = False

    @property
    def is_number(self) -> bool:
        """Returns whether it is set to the right."""
        return self.form in {count, duration, share}


@dataclass(frozen=True, slots=True)
class Section:
    """A table with its heading. Without rows it is left out."""

    name: str
    title: str
    about: str
    columns: tuple[Column, ...]


def _times(time: str, above: str) -> tuple[Column, ...]:
    return tuple(
        Column(f"{time}_{rank}_ms", rank, duration, above) for rank in ("p50", "p95", "p99")
    )


SECTIONS = (
    Section(
        "queues", "Queues",
        "Wait: from ready to handed out. Run: one hand-out. In all: from push to end.",
        (
            Column("queue", "queue", text), Column("opened", "pushed", count, is_bar=True),
            Column("completed", "completed", count), Column("failed", "failed or lost", count),
            Column("dead", "dead", count), *_times("wait", "wait"), *_times("run", "run"),
            *_times("total", "in all"),
        ),
    ),
    Section(
        "slo", "Objectives",
        "A burn rate of 1 uses up exactly what the objective allows; above 1 it is missed.",
        (
            Column("objective", "objective", text), Column("queue", "queue", text),
            Column("share", "declared", share), Column("kept", "kept", share),
            Column("measured", "measured", count), Column("bad", "bad", count),
            Column("burn_rate", "burn rate", count),
            Column("minutes_with_bad", "minutes with bad ones", count),
        ),
    ),
    Section(
        "errors", "Errors",
        "Failed attempts by message. Numbers, ids, addresses and paths are taken out, and nearly "
        "equal messages are one.",
        (
            Column("failures", "failures", count, is_bar=True), Column("share", "share", share),
            Column("dead", "died of it", count), Column("message", "message", text, is_wide=True),
            Column("error_types", "type", text), Column("queues", "queues", text),
            Column("first_at", "first", moment), Column("last_at", "last", moment),
        ),
    ),
    Section(
        "versions", "Versions",
        "What a deploy changed: each job under an older and a newer version of its workers, the "
        "greatest change for the worse first.",
        (
            Column("name", "job", text), Column("queue", "queue", text),
            Column("from_version", "from", text), Column("worker_version", "to", text),
            Column("failure_rate_before", "before", share, "failed"),
            Column("failure_rate", "now", share, "failed"),
            Column("run_p95_before_ms", "before", duration, "run p95"),
            Column("run_p95_ms", "now", duration, "run p95"),
            Column("attempts", "attempts now", count),
        ),
    ),
    Section(
        "capacity", "Capacity",
        "Workers that keep 99 % of waits under a second at the busiest hour, by Erlang C. Checked "
        "by handing that hour's jobs out again to so many: the share that waits longer.",
        (
            Column("queue", "queue", text), Column("busiest_hour", "busiest hour", moment),
            Column("offered_max", "busy on average", count),
            Column("workers_needed_max", "workers needed", count, is_bar=True),
            Column("workers_seen_max", "workers seen", count),
            Column("wait_p99_max_ms", "wait p99 then", duration),
            Column("replayed", "handed out again", count),
            Column("replayed_late_share", "waits longer", share),
        ),
    ),
    Section(
        "fairness", "Fairness between groups",
        "Jain's index of the run times of groups: 1 is equal, near 0 is one for all.",
        (
            Column("queue", "queue", text), Column("jain", "Jain's index", count),
            Column("groups", "groups", count), Column("busiest_group", "busiest group", text),
            Column("run_share_max", "its share", share),
            Column("wait_max_ms", "longest wait", duration),
        ),
    ),
    Section(
        "flows", "Flows",
        "Jobs that waited for others, the slowest first. Slack: how much earlier than the critical "
        "job the next one ended.",
        (
            Column("name", "job", text), Column("queue", "queue", text),
            Column("flows", "flows", count), Column("total_p95_ms", "in all, p95", duration),
            Column("run_share", "of this, running", share),
            Column("critical_name", "mostly waits for", text),
            Column("slack_ms", "slack", duration),
        ),
    ),
    Section(
        "batches", "Batches",
        "The least finished first. Stragglers took over three times the median.",
        (
            Column("batch_id", "batch", text), Column("queues", "queues", text),
            Column("jobs", "jobs", count), Column("progress", "ended", share),
            Column("completed", "completed", count), Column("total_p50_ms", "median", duration),
            Column("total_max_ms", "longest", duration),
            Column("straggler_count", "stragglers", count),
        ),
    ),
    Section(
        "workers", "Workers",
        "The most failing first. A lease is lost when a worker dies or goes silent.",
        (
            Column("worker", "worker", text), Column("worker_version", "version", text),
            Column("attempts", "attempts", count), Column("failure_rate", "failed or lost", share),
            Column("stalled", "leases lost", count),
            Column("busy_share_max", "jobs at a time, busiest hour", count),
        ),
    ),
    Section(
        "open_jobs", "Open jobs",
        "Jobs that had not ended with the last event.",
        (
            Column("queue", "queue", text), Column("open", "open", count, is_bar=True),
            Column("delayed", "of these, for later", count), Column("oldest", "oldest", moment),
        ),
    ),
    Section(
        "audit", "Who did what",
        "Changes that an operator asked for, by who it was.",
        (
            Column("principal", "who", text), Column("event", "what", text),
            Column("jobs", "jobs", count), Column("operations", "operations", count),
            Column("last_at", "last", moment),
        ),
    ),
    Section(
        "files", "Files read",
        "Taken, partly taken (some of their events were there already), repeated, or bad.",
        (
            Column("status", "status", text), Column("files", "files", count),
            Column("rows", "events", count), Column("rows_apart", "events set apart", count),
        ),
    ),
    Section(
        "bad_files", "Files and events set apart",
        "Nothing is skipped silently: what could not be used, and why.",
        (
            Column("path", "file", text, is_wide=True), Column("reason", "why", text),
            Column("rows_apart", "events", count),
        ),
    ),
)  # fmt: skip
