"""What operators are shown of a queue."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jobline.v1.queue_service_pb2 import ListQueuesResponse
from jobline_server.dispatch.frames import Handler, Open, Worker
from jobline_server.engine.commands import Push
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import AckLevel, JobOptions, QueueSettings
from jobline_server.rpc.convert.queues import fill_queue
from jobline_server.runtime import pace
from jobline_server.runtime.calls import queues as queues_calls
from jobline_server.runtime.calls.queues import PRIORITIES_SHOWN_MAX
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.queries.paging import API_PAGE_BYTES_MAX
from jobline_server.runtime.queries.queue_order import QueueOrder
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit
from jobline_server.runtime.workload import longest_wait_ms
from jobline_server.web import metrics
from jobline_server.web.queue_metrics import queue_metrics
from tests.unit.rounds import rounds_of
from tests.unit.runtime.ended.test_many_ids import committed
from tests.unit.runtime.test_timer_loop import delayed


async def pushed(runtime: Runtime, *options: JobOptions) -> None:
    rows = JobColumns([b"x"] * len(options), list(options))
    await runtime.pushes.push(Push("mail", JobOptions(), rows=rows, level=AckLevel.BUFFERED))
    await runtime.core.commits.commit_once()


async def test_the_last_page_of_queues_says_so_however_full_it_is(runtime: Runtime) -> None:
    for queue in ("a", "b", "c", "d"):
        await runtime.pushes.push(
            Push(
                queue,
                JobOptions(),
                rows=JobColumns([b"x"], [JobOptions()]),
                level=AckLevel.BUFFERED,
            )
        )
    pages, token = [], ""
    for _ in range(2):
        views, token = await runtime.queues.list_queues(page_size=2, page_token=token, prefix="")
        pages.append([view.name for view in views])
    assert (pages, token) == ([["a", "b"], ["c", "d"]], "")


async def push_to(runtime: Runtime, queue: str, count: int) -> None:
    rows = JobColumns([b"x"] * count, [JobOptions()] * count)
    await runtime.pushes.push(Push(queue, JobOptions(), rows=rows, level=AckLevel.BUFFERED))


async def busiest(runtime: Runtime, page_size: int, **asked: Any) -> list[list[str]]:
    """The pages of the busiest queues."""
    pages: list[list[str]] = []
    token = ""
    while token or not pages:
        views, token = await runtime.queues.list_queues(
            page_size=page_size,
            page_token=token,
            order=QueueOrder.ACTIVITY,
            **{"prefix": "", **asked},
        )
        pages.append([view.name for view in views])
    return pages


async def test_the_busiest_queues_come_first_on_every_page(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what happened lately, then by jobs that wait, then by name; of all shards together."""
    monkeypatch.setattr(queues_calls, "STEP_QUEUES", 1)
    for name, count in {"a": 1, "b": 3, "c": 1, "d": 2, "e": 5}.items():
        await push_to(runtime, name, count)
    for minute in range(2):
        await runtime.minutes.close_minute(minute)
    await push_to(runtime, "c", 2)
    await push_to(runtime, "f", 1)
    assert await busiest(runtime, 2) == [["c", "f"], ["e", "b"], ["d", "a"]]
    assert await busiest(runtime, 1_000) == [["c", "f", "e", "b", "d", "a"]]


async def test_the_busiest_queues_are_those_that_may_be_read(runtime: Runtime) -> None:
    """A page is full of them, and `prefix` chooses among them."""
    for at, name in enumerate(("mail", "mail-2", "other", "mine")):
        await push_to(runtime, name, at + 1)
    assert await busiest(runtime, 2, may_read=lambda name: name != "mine") == [
        ["other", "mail-2"],
        ["mail"],
    ]
    assert await busiest(runtime, 9, prefix="m", may_read=lambda name: name != "mine") == [
        ["mail-2", "mail"]
    ]


async def test_a_list_goes_in_slices_however_long_it_takes_to_say_what_may_be_read(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To compare 2,000 names with a thousand globs took half a second of the loop."""
    for name in ("a", "b", "c", "d", "e", "f"):
        await push_to(runtime, name, 1)
    passed = 0.0

    def takes_most_of_a_slice(name: str) -> bool:
        nonlocal passed
        passed += 0.6 * pace.SLICE_SECONDS
        return name != "e"

    monkeypatch.setattr(pace, "perf_counter", lambda: passed)
    (views, token), rounds = await rounds_of(
        runtime.queues.list_queues(
            page_size=4, page_token="", prefix="", may_read=takes_most_of_a_slice
        )
    )
    assert ([view.name for view in views], token) == (["a", "b", "c", "d"], "d")
    assert rounds >= 3


async def large_queues(runtime: Runtime, *, count: int) -> None:
    """Queues with as much as one may say for itself, nearly 50 KiB."""
    large = QueueSettings(
        non_retryable_error_types=tuple("é" * 250 + str(index) for index in range(100))
    )
    for index in range(count):
        update = runtime.queues.update_queue(f"q{index:02}", large, None, Audit())
        await committed(runtime, asyncio.ensure_future(update))


async def test_a_page_of_queues_ends_when_it_shows_enough_bytes(runtime: Runtime) -> None:
    """None is left out, and none comes twice."""
    await large_queues(runtime, count=65)
    names, token, pages = [], "", 0
    while token or not pages:
        views, token = await runtime.queues.list_queues(
            page_size=1_000, page_token=token, prefix=""
        )
        response = ListQueuesResponse(next_page_token=token)
        for view in views:
            fill_queue(response.queues.add(), view)
        assert response.ByteSize() <= API_PAGE_BYTES_MAX
        names += [view.name for view in views]
        pages += 1
    assert (pages, names) == (2, [f"q{index:02}" for index in range(65)])


async def test_metrics_show_as_many_queues_however_much_they_say(runtime: Runtime) -> None:
    await large_queues(runtime, count=65)
    collector = metrics.ServerCollector(runtime, version="1", transport="grpcio")
    await collector.refresh()
    samples = {
        (sample.name, sample.labels.get("queue")): sample.value
        for family in collector.collect()
        for sample in family.samples
    }
    assert ("jobline_queue_paused", "q64") in samples
    assert samples["jobline_queues_without_metrics", None] == 0


def connected(runtime: Runtime, *names: str) -> None:
    handlers = tuple(Handler("mail", name) for name in names)
    runtime.streams.open_stream(Open(Worker("w"), (("mail", 1),), handlers))


async def test_each_priority_is_shown_with_all_that_is_ready(runtime: Runtime) -> None:
    """The last that is shown too, whatever the names of its jobs are."""
    most = PRIORITIES_SHOWN_MAX
    options = [JobOptions(priority=rank, name=name) for rank in range(most + 1) for name in "ab"]
    await pushed(runtime, *options)
    shown = runtime.queues.get_queue("mail").priorities
    assert shown == [(rank, 2) for rank in range(most, 0, -1)]


async def test_jobs_that_nobody_handles_are_counted_while_somebody_is_there(
    runtime: Runtime,
) -> None:
    await pushed(runtime, *[JobOptions(name=name) for name in "aabc"])
    counts = [runtime.queues.get_queue("mail").unhandled]
    for names in ("a", "ab", ""):
        connected(runtime, *names)
        counts.append(runtime.queues.get_queue("mail").unhandled)
    assert counts == [0, 2, 1, 0]


async def test_a_page_of_queues_goes_in_slices(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at the lanes of a queue may take a millisecond, and a page has a thousand of them."""
    monkeypatch.setattr(pace, "SLICE_SECONDS", 0.0)
    for name in "abcdef":
        await push_to(runtime, name, 1)
    listing = runtime.queues.list_queues(page_size=100, page_token="", prefix="")
    (views, _), rounds = await rounds_of(listing)
    assert (len(views), rounds > 6) == (6, True)


async def test_oldest_ready_job_of_a_fair_queue_may_be_a_tenants(runtime: Runtime) -> None:
    """It was as if there were none but those without a group."""
    fair = runtime.queues.update_queue("mail", QueueSettings(fair=True), None, Audit())
    await committed(runtime, asyncio.ensure_future(fair))
    rows = JobColumns([b"x"], [JobOptions()], ties=[Ties("acme")])
    await runtime.pushes.push(Push("mail", JobOptions(), rows=rows, level=AckLevel.BUFFERED))
    pushed_ms = runtime.core.wall_ms()

    assert runtime.queues.get_queue("mail").oldest_ready_ms == pushed_ms


async def test_oldest_ready_job_counts_from_when_it_was_ready(runtime: Runtime) -> None:
    """As KEDA's `oldest_age` does: an hour of delay is no wait that more workers would shorten."""
    clock = runtime.core.clock
    assert isinstance(clock, ManualClock)
    hour_ms = 3_600_000
    await runtime.pushes.push(delayed(runtime, hour_ms))
    clock.advance(hour_ms)
    runtime.timer_loop.run_due()
    await runtime.core.commits.commit_once()
    clock.advance(7_000)

    view = runtime.queues.get_queue("mail")

    waited_ms = clock.now().wall_ms - view.oldest_ready_ms
    assert 7_000 <= waited_ms < 8_000
    assert waited_ms == longest_wait_ms(runtime.core.slots.find_queue("mail"), clock.now().wall_ms)
    (oldest,) = (
        one
        for one in queue_metrics([view], clock.now().wall_ms)
        if one.name == "jobline_queue_oldest_ready_seconds"
    )
    assert oldest.samples[0].value == waited_ms / 1_000
