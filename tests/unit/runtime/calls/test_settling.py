"""Settling: one budget of time for all who settle, and no wait for those who settle little."""

from __future__ import annotations

import asyncio

import pytest

from jobline_server.dispatch.frames import Settle
from jobline_server.runtime.calls import settling as module
from jobline_server.runtime.calls.settling import Settled
from jobline_server.runtime.runtime import Runtime

UNKNOWN = [1 << 40 | 1]


def unknown(jobs: int) -> Settle:
    """Acks of jobs that never were."""
    return Settle(1, UNKNOWN * jobs, [1] * jobs)


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten acks a slice, and one slice in an iteration of the loop."""
    monkeypatch.setattr(module, "ACKS_AT_ONCE", 10)
    monkeypatch.setattr(module, "SLICE_SECONDS", 0.0)


@pytest.mark.usefixtures("no_time")
async def test_many_who_settle_much_share_one_budget(runtime: Runtime) -> None:
    """A hundred calls of ten thousand unknown ids each were a hundred slices in one step."""
    decided: list[int] = []
    settles_ack = runtime.settles.ack

    def counted(*arguments, **options):
        decided[-1] += 1
        return settles_ack(*arguments, **options)

    runtime.settles.ack = counted  # type: ignore[method-assign]
    done: list[Settled] = []

    async def one() -> None:
        for _ in runtime.settling.decide([unknown(40)], done.append):
            await asyncio.sleep(0)

    decided.append(0)
    tasks = [asyncio.ensure_future(one()) for _ in range(5)]
    while len(done) < len(tasks):
        await asyncio.sleep(0)
        decided.append(0)
    # The first slice of each is decided as it comes, and then one in an iteration.
    assert sum(decided) == 5 * 4
    assert max(decided) <= 5 + 1
    assert sorted(decided)[-2] <= 2


@pytest.mark.usefixtures("no_time")
async def test_who_settles_little_waits_for_nobody(runtime: Runtime) -> None:
    """Its one slice is decided at once, while another has used up the time."""
    much = runtime.settling.decide([unknown(40)], lambda _: None)
    next(much)
    done: list[Settled] = []
    assert list(runtime.settling.decide([unknown(10)], done.append)) == []
    assert len(done[0].exceptions) == 10


@pytest.mark.usefixtures("no_time")
async def test_a_caller_that_goes_on_in_the_same_iteration_is_not_stopped_again(
    runtime: Runtime,
) -> None:
    """The first frame of a stream is taken in one go."""
    done: list[Settled] = []
    pauses = list(runtime.settling.decide([unknown(40)], done.append))
    assert len(pauses) <= 3
    assert len(done[0].exceptions) == 40
