"""Jobs that are too large for some callers: they wait for others, and keep nobody back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import FailItem, Leased, LeasedJob, Pull, Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.producers import Call
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobError, JobState
from jobline_server.runtime.calls.pull_dedup import leases_of, runs_of
from jobline_server.runtime.calls.pulls import LongPoll
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.obstacles import ObstacleKind
from jobline_server.runtime.runtime import Runtime
from tests.pushed_rows import NewJob, rows_of
from tests.unit.runtime.conftest import opened

MIB = 1 << 20
FIVE, SEVEN, NINE = (bytes([size]) * (size * MIB) for size in (5, 7, 9))


async def pushed(runtime: Runtime, *payloads: bytes, rows: bool = False) -> list[int]:
    """Jobs of one push; their ids follow each other whatever their sizes."""
    command = Push("mail", DEFAULT_OPTIONS, level=AckLevel.BUFFERED)
    if rows:
        command.rows = rows_of(NewJob(payload, DEFAULT_OPTIONS, "") for payload in payloads)
    else:
        command.payloads = Payloads.of(payloads)
    found = await runtime.pushes.push(command)
    await runtime.core.commits.commit_once()
    return list(range(found.first_id, found.first_id + found.count))


async def pulled(runtime: Runtime, message_mib: int = 4) -> Leased:
    pull = Pull((("mail", 1),), max_jobs=1_000, message_bytes_max=message_mib * MIB)
    return await runtime.pulls.pull(pull)


def ids_of(leased: Leased) -> list[int]:
    jobs = [
        Leased([item]) if isinstance(item, LeasedJob) else Leased(runs=[item])
        for item in leased.items()
    ]
    return [job_id for job in jobs for job_id, _ in leases_of(runs_of(job))]


async def pull_ids(runtime: Runtime, message_mib: int) -> list[int]:
    """What pulls of this caller bring, one after another, until one brings nothing."""
    found: list[int] = []
    while ids := ids_of(await pulled(runtime, message_mib)):
        found += ids
    return found


@pytest.mark.parametrize("rows", [False, True], ids=["lot", "rows"])
async def test_a_job_that_is_too_large_keeps_nobody_back(runtime: Runtime, *, rows: bool) -> None:
    """Trial C6: who takes it finds everything in the order of the push."""
    payloads = (b"a", FIVE, b"b", b"c", NINE, SEVEN, b"d")
    first = await pushed(runtime, *payloads, rows=rows)
    again = await pushed(runtime, *payloads, rows=rows)
    assert again[0] == first[-1] + 1
    queue = runtime.core.slots[0].shard.queues["mail"]
    assert ids_of(await pulled(runtime)) == [
        *(first[i] for i in (0, 2, 3, 6)),
        *(again[i] for i in (0, 2, 3, 6)),
    ]
    assert await pull_ids(runtime, 4) == []
    assert (queue.counts[JobState.READY], queue.counts[JobState.ACTIVE]) == (6, 8)
    # One of seven is of the same size as those of five, so the second of these waits behind it.
    assert await pull_ids(runtime, 6) == [first[1]]
    assert await pull_ids(runtime, 8) == [first[5], again[1], again[5]]
    assert await pull_ids(runtime, 64) == [first[4], again[4]]
    assert (queue.counts[JobState.READY], queue.counts[JobState.ACTIVE]) == (0, 14)


async def test_a_push_with_a_large_payload_is_one_call_when_it_comes_again(
    runtime: Runtime,
) -> None:
    """Trial C6: it is several lots, and stored once all the same."""
    call = Call(producer=b"p" * 16, sequence=1, answered_below=1, digest=7)
    hows: list[dict[str, Any]] = [{"request_id": b"r", "request_digest": 7}, {"calls": (call,)}]
    for how in hows:
        command = Push("mail", DEFAULT_OPTIONS, payloads=Payloads.of([b"a", FIVE, b"b"]))
        command = replace(command, level=AckLevel.BUFFERED, **how)
        first = await runtime.pushes.push(command)
        again = await runtime.pushes.push(command)
        assert (again.first_id, again.count) == (first.first_id, 3)


async def test_a_caller_that_takes_all_gets_all_in_order(runtime: Runtime) -> None:
    """Trial C6: a lane of its own does not change whose turn a job is."""
    ids = await pushed(runtime, b"a", FIVE, b"b", NINE, b"c")
    assert await pull_ids(runtime, 64) == ids


async def test_the_limit_is_exact(runtime: Runtime) -> None:
    """Trial C6: a payload with everything that a job may have beside it fits the message."""
    largest = limits.MESSAGE_BYTES_DEFAULT - limits.JOB_EXTRA_BYTES
    fits, _ = await pushed(runtime, bytes(largest), bytes(largest + 1))
    assert await pull_ids(runtime, 4) == [fits]


async def test_a_large_job_that_failed_waits_for_a_caller_that_takes_it(runtime: Runtime) -> None:
    """Trial C6: its next attempts are not given to others."""
    (job_id,) = await pushed(runtime, FIVE)
    ((_, delivery),) = leases_of(runs_of(await pulled(runtime, 64)))
    runtime.settles.fail([FailItem(job_id, delivery, JobError(), retry_after_ms=0)])
    await runtime.core.commits.commit_once()
    assert await pull_ids(runtime, 4) == []
    assert await pull_ids(runtime, 64) == [job_id]


async def test_large_jobs_outlive_a_restart_in_their_lanes(tmp_path: Path) -> None:
    """Trial C6: from the journal."""
    async with opened(tmp_path, ManualClock()) as runtime:
        ids = await pushed(runtime, b"a", FIVE, b"b")
        assert await pull_ids(runtime, 4) == [ids[0], ids[2]]
        await runtime.core.commits.commit_once()
    async with opened(tmp_path, ManualClock()) as runtime:
        more = await pushed(runtime, b"c")
        assert await pull_ids(runtime, 4) == more
        assert await pull_ids(runtime, 64) == [ids[1]]


async def test_explain_says_that_a_job_is_too_large(runtime: Runtime) -> None:
    """Trial C6: for those who are there, whoever else may be busy."""
    (job_id,) = await pushed(runtime, FIVE)
    poll = Pull((("mail", 1),), wait_ms=20_000)
    runtime.core.rings.join(LongPoll(poll))
    _, obstacles = await runtime.explainer.explain_job(job_id)
    assert [obstacle.kind for obstacle in obstacles] == [ObstacleKind.TOO_LARGE]
    assert "5,242,880 bytes" in obstacles[0].message
    runtime.core.rings.join(LongPoll(Pull((("mail", 1),), message_bytes_max=64 * MIB)))
    assert (await runtime.explainer.explain_job(job_id))[1] == []
