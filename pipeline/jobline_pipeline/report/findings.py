"""What stands out in the answers: a few sentences, the gravest first. Pure.

A rule looks at one answer and yields a sentence for each row that a person on call should see.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jobline_pipeline.report.shown import count, duration, share

if TYPE_CHECKING:
    from jobline_pipeline.report.answers import Rows

# A version stands out that fails this many times as often as the one before, and at least so often.
_WORSE, _FAILING_MIN = 2.0, 0.02
_SLOWER = 1.5
# An error stands out that is this part of all failures.
_ERROR_SHARE = 0.2
# One group with this part of a queue's work stands out, where there are others.
_GROUP_SHARE = 0.5
SHOWN = 8


def findings(answers: dict[str, Rows]) -> list[str]:
    """Returns the sentences, up to `SHOWN`."""
    rules = (_apart, _objectives, _versions, _errors, _lost_leases, _capacity, _groups)
    return [said for rule in rules for said in rule(answers)][:SHOWN]


def _apart(answers: dict[str, Rows]) -> Iterator[str]:
    bad = sum(row["files"] for row in answers["files"] if row["status"] == "bad")
    apart = sum(row["rows_apart"] for row in answers["files"])
    if bad or apart:
        yield (
            f"{count(bad)} files could not be used and {count(apart)} events were set apart: what "
            "follows is not whole."
        )


def _objectives(answers: dict[str, Rows]) -> Iterator[str]:
    for row in answers["slo"]:
        if row["kept"] < row["share"]:
            yield (
                f"The objective “{row['objective']}” was missed: {share(row['kept'])} instead of "
                f"{share(row['share'])}."
            )


def _versions(answers: dict[str, Rows]) -> Iterator[str]:
    for row in answers["versions"]:
        before, now = row["failure_rate_before"], row["failure_rate"]
        who = f"{_job(row)} under version {row['worker_version'] or '(none)'}"
        than = f"version {row['from_version'] or '(none)'}"
        if now >= _FAILING_MIN and now >= before * _WORSE:
            yield f"{who} fails in {share(now)} of attempts; with {than} it was {share(before)}."
        slow, slow_before = row["run_p95_ms"], row["run_p95_before_ms"]
        if slow_before and slow >= slow_before * _SLOWER:
            yield (
                f"{who} takes {duration(slow)} (p95); with {than} it was {duration(slow_before)}."
            )


def _errors(answers: dict[str, Rows]) -> Iterator[str]:
    for row in answers["errors"]:
        if row["share"] >= _ERROR_SHARE:
            said = row["message"] or "no message"
            yield f"{share(row['share'])} of all failures are “{said}” in {row['queues']}."


def _lost_leases(answers: dict[str, Rows]) -> Iterator[str]:
    for row in answers["workers"]:
        if row["stalled"]:
            yield (
                f"{row['worker']} lost {count(row['stalled'])} leases: it died, or went silent, "
                "with jobs in its hands."
            )


def _capacity(answers: dict[str, Rows]) -> Iterator[str]:
    for row in answers["capacity"]:
        if row["workers_needed_max"] > row["workers_seen_max"]:
            yield (
                f"{row['queue']} needed {count(row['workers_needed_max'])} workers at its busiest "
                f"hour and had {count(row['workers_seen_max'])}."
            )


def _groups(answers: dict[str, Rows]) -> Iterator[str]:
    for row in answers["fairness"]:
        if row["groups"] > 1 and row["run_share_max"] >= _GROUP_SHARE:
            yield (
                f"One of {count(row['groups'])} groups of {row['queue']}, {row['busiest_group']}, "
                f"had up to {share(row['run_share_max'])} of an hour's work."
            )


def _job(row: dict[str, Any]) -> str:
    return str(row["name"] or row["queue"])
