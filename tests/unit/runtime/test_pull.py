"""A pull that is asked again, with the id of the first."""

from __future__ import annotations

import pytest

from jobline_server.engine.commands import Leased, Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel
from jobline_server.runtime import workers
from jobline_server.runtime.runtime import Runtime
from tests.pushed_rows import NewJob, rows_of


async def pushed(runtime: Runtime, *, rows: int, plain: int) -> None:
    keyed = rows_of(NewJob(b"x", DEFAULT_OPTIONS, f"key {index}") for index in range(rows))
    payloads = Payloads.of([b"x"] * plain)
    await runtime.push(
        Push("mail", DEFAULT_OPTIONS, rows=keyed, payloads=payloads, level=AckLevel.BUFFERED)
    )
    await runtime.core.commits.commit_once()


async def pulled(runtime: Runtime, request_id: bytes, *, max_jobs: int = 10) -> Leased:
    return await runtime.pull(
        queues=[("mail", 1)],
        max_jobs=max_jobs,
        wait_ms=0,
        lease_ms=None,
        worker="w",
        request_id=request_id,
        accepts_runs=True,
        names=frozenset(),
    )


async def test_the_same_pull_again_returns_what_is_still_held(runtime: Runtime) -> None:
    """Members of a run one by one; without what was settled meanwhile."""
    await pushed(runtime, rows=1, plain=3)
    first = await pulled(runtime, b"r")
    runtime.settles.ack([first.runs[0].first_id], [first.runs[0].delivery], {})
    again = await pulled(runtime, b"r")
    assert len(again.jobs) == 3
    assert await pulled(runtime, b"other") == Leased()


async def test_what_is_remembered_of_pulls_has_a_bound(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run is one thing to remember, however long; the oldest pull is forgotten first."""
    monkeypatch.setattr(workers, "REMEMBERED_LEASES_MAX", 5)
    await pushed(runtime, rows=6, plain=100)
    for request_id in (b"1", b"2"):
        await pulled(runtime, request_id, max_jobs=3)
    await pulled(runtime, b"3", max_jobs=100)
    counts = {name: (await pulled(runtime, name)).count() for name in (b"3", b"2", b"1")}
    assert counts == {b"3": 100, b"2": 3, b"1": 0}
