"""Which events concern a webhook, of runs that are long and of many queues."""

from __future__ import annotations

import pytest

from jobline.v1.event_pb2 import EventKind
from jobline_server.background import webhook_messages
from jobline_server.background.webhook_messages import Filter, Found, filters_of, found_in, type_of
from jobline_server.engine.rules import JobRules
from jobline_server.engine.webhook import JOBS_WEBHOOK, Secrets, Webhook, WebhookSettings
from jobline_server.wire.event_runs import Columns, EventRun, EventView

DONE = int(EventKind.EVENT_KIND_COMPLETED)
URL = "http://a.example/"


def filters(**settings: tuple[str, ...]) -> list[Filter]:
    webhook = Webhook("w", 1, WebhookSettings(url=URL, **settings), Secrets(b""))  # type: ignore[arg-type]
    return filters_of([webhook])


def run_of(starts: list[int], counts: list[int], columns: Columns | None = None) -> EventRun:
    view = EventView(0, 1, 1_000, DONE, "mail")
    return EventRun(view, starts, counts, columns or Columns(), sum(counts))


def test_of_a_long_run_only_the_last_are_made() -> None:
    """The others are counted, at once."""
    found = [*found_in(run_of([1, 5_000_000], [1_000_000, 3]), filters(), 5)]
    assert found == [
        Found("w", 1, 0, 0, "", 999_998),
        Found("w", 999_999, 0, 999_998),
        Found("w", 1_000_000, 0, 999_999),
        *(Found("w", 5_000_000 + n, 1, 1_000_000 + n) for n in range(3)),
    ]


def test_only_events_that_concern_it_count_towards_the_last() -> None:
    """Those of other names are no reason to drop any."""
    columns = Columns(names=("mine", "other", "mine"))
    found = [*found_in(run_of([1, 10, 900], [2, 500, 2], columns), filters(names=("mine",)), 3)]
    assert found == [
        Found("w", 1, 0, 0, "", 1),
        Found("w", 2, 0, 1),
        Found("w", 900, 2, 502),
        Found("w", 901, 2, 503),
    ]


def test_urls_of_jobs_have_a_bound_of_their_own() -> None:
    with_url, without = JobRules(webhook=URL), JobRules()
    columns = Columns(rules=(with_url, without, with_url))
    found = [*found_in(run_of([1, 2, 3], [1, 1, 1], columns), [], 1)]
    assert found == [Found(JOBS_WEBHOOK, 1, 0, 0, URL, 1), Found(JOBS_WEBHOOK, 3, 2, 2, URL)]


def test_queues_that_match_are_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_messages, "QUEUES_KEPT_MAX", 2)
    webhook = Webhook("w", 1, WebhookSettings(url=URL, queue="m*"), Secrets(b""))
    [one] = filters_of([webhook])
    for _ in range(2):
        for queue in ("mail", "other", "more"):
            view = EventView(0, 1, 1_000, DONE, queue)
            assert one.wants_kind(view) == queue.startswith("m")
            assert len(one._queues) <= 2


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (EventKind.EVENT_KIND_WORKER_CONNECTED, "worker.connected"),
        (EventKind.EVENT_KIND_WORKER_LOST, "worker.lost"),
        (EventKind.EVENT_KIND_STORAGE_LOW, "storage.low"),
        (EventKind.EVENT_KIND_DEAD_EXPIRED, "job.dead_expired"),
    ],
)
def test_a_webhook_may_ask_for_events_of_the_server(kind: int, name: str) -> None:
    """They have no queue: one that is for queues of a pattern is not told."""
    assert type_of(kind) == name
    run = EventRun(EventView(0, 1, 1_000, int(kind), "", worker="w"))
    assert [*found_in(run, filters(events=(int(kind),)), 5)] == [Found("w", 0, 0, 0)]  # type: ignore[arg-type]
    webhook = Webhook(
        "w", 1, WebhookSettings(url=URL, events=(int(kind),), queue="m*"), Secrets(b"")
    )
    assert [*found_in(run, filters_of([webhook]), 5)] == []


@pytest.mark.parametrize("jobs_each", [1, 10])
def test_many_names_and_filters_are_looked_at_in_parts(
    monkeypatch: pytest.MonkeyPatch, jobs_each: int
) -> None:
    """Four thousand jobs of as many names, and a hundred webhooks that want one of them: it was one
    step of 62 ms. Where events are dropped, all jobs are counted before the first event.
    """
    looks: list[int] = [0]
    wants = Filter.wants_job

    def counted(one: Filter, name: str, rules: JobRules) -> bool:
        looks[-1] += 1
        return wants(one, name, rules)

    monkeypatch.setattr(Filter, "wants_job", counted)
    jobs, webhooks = 4_000, 100
    names = [f"name-{number}" for number in range(jobs)]
    starts = [*range(0, jobs * jobs_each, jobs_each)]
    run = run_of(starts, [jobs_each] * jobs, Columns(names=names))
    many = [
        *filters(names=(names[-1],)),
        *[one for _ in range(webhooks - 1) for one in filters(names=("none",))],
    ]
    events = []
    for found in found_in(run, many, 10_000):
        if found is None:
            looks.append(0)
        else:
            events.append(found.job_id)
    assert events == [*range(starts[-1], starts[-1] + jobs_each)]
    assert sum(looks) == jobs * webhooks
    assert max(looks) <= webhook_messages.CHECKS_AT_ONCE
