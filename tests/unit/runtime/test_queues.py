"""What operators are shown of a queue."""

from __future__ import annotations

from jobline_server.dispatch.frames import Handler, Open, Worker
from jobline_server.engine.commands import Push, Rows
from jobline_server.engine.values import AckLevel, JobOptions
from jobline_server.runtime.queues import PRIORITIES_SHOWN_MAX
from jobline_server.runtime.runtime import Runtime


async def pushed(runtime: Runtime, *options: JobOptions) -> None:
    rows = Rows([b"x"] * len(options), list(options))
    await runtime.push(Push("mail", JobOptions(), rows=rows, level=AckLevel.BUFFERED))
    await runtime.core.commits.commit_once()


async def test_the_last_page_of_queues_says_so_however_full_it_is(runtime: Runtime) -> None:
    for queue in ("a", "b", "c", "d"):
        await runtime.push(
            Push(queue, JobOptions(), rows=Rows([b"x"], [JobOptions()]), level=AckLevel.BUFFERED)
        )
    pages, token = [], ""
    for _ in range(2):
        views, token = runtime.list_queues(page_size=2, page_token=token, prefix="")
        pages.append([view.name for view in views])
    assert (pages, token) == ([["a", "b"], ["c", "d"]], "")


def connected(runtime: Runtime, *names: str) -> None:
    handlers = tuple(Handler("mail", name) for name in names)
    runtime.open_stream(Open(Worker("w"), (("mail", 1),), handlers))


async def test_each_priority_is_shown_with_all_that_is_ready(runtime: Runtime) -> None:
    """The last that is shown too, whatever the names of its jobs are."""
    most = PRIORITIES_SHOWN_MAX
    options = [JobOptions(priority=rank, name=name) for rank in range(most + 1) for name in "ab"]
    await pushed(runtime, *options)
    shown = runtime.get_queue("mail").priorities
    assert shown == [(rank, 2) for rank in range(most, 0, -1)]


async def test_jobs_that_nobody_handles_are_counted_while_somebody_is_there(
    runtime: Runtime,
) -> None:
    await pushed(runtime, *[JobOptions(name=name) for name in "aabc"])
    counts = [runtime.get_queue("mail").unhandled]
    for names in ("a", "ab", ""):
        connected(runtime, *names)
        counts.append(runtime.get_queue("mail").unhandled)
    assert counts == [0, 2, 1, 0]
