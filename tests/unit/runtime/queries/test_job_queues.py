"""The queues of jobs, live and ended, by their ids."""

from __future__ import annotations

import asyncio
from typing import Any

from jobline_server.engine.commands import Push
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel
from jobline_server.runtime.runtime import Runtime
from tests.pushed_rows import NewJob, rows_of
from tests.unit.runtime.commits.test_commits import a_pull

UNKNOWN = (1 << 43) - 1


async def test_live_jobs_and_those_that_have_ended(runtime: Runtime) -> None:
    """Others have no queue."""

    async def push(queue: str) -> int:
        rows = rows_of([NewJob(b"x", DEFAULT_OPTIONS)])
        pushed = await runtime.pushes.push(
            Push(queue, DEFAULT_OPTIONS, rows, level=AckLevel.BUFFERED)
        )
        await runtime.core.commits.commit_once()
        return pushed.first_id

    ended, live = await push("mail"), await push("sms")
    leased = await a_pull(runtime, "mail")
    handed: list[Any] = [*leased.runs, *leased.jobs]
    (delivery,) = [one.delivery for one in handed]
    ack = asyncio.ensure_future(runtime.settle_calls.ack([ended], [delivery], {}))
    await asyncio.sleep(0)
    await runtime.core.commits.commit_once()
    await ack
    queues = runtime.job_queues
    assert (queues.live(live), queues.live(ended), queues.live(UNKNOWN)) == ("sms", None, None)
    assert await queues.find([live, ended, UNKNOWN]) == {live: "sms", ended: "mail"}
