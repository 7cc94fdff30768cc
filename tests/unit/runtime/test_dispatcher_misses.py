"""Consumers that find nothing: few are asked, and nothing stays behind that another may have."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline_server.dispatch import ring
from jobline_server.engine.commands import Pull, Push
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.queues import decide_update_queue
from jobline_server.engine.holder import Holder
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.queue import Queue
from jobline_server.engine.rules import JobRules
from jobline_server.engine.shard import Shard
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import JobOptions, QueueSettings
from jobline_server.runtime.calls.pulls import LongPoll
from tests.unit.runtime.test_dispatcher import World


class Taker(LongPoll):
    """One that waits, with a version, and room, as a worker's stream may have them."""

    def __init__(
        self,
        *names: str,
        jobs: int = 10,
        version: str = "",
        payload_bytes_max: int = 1_000,
        window_bytes: int = 1_000,
    ) -> None:
        super().__init__(Pull((("mail", 1),), max_jobs=jobs, names=frozenset(names)))
        self.version = version
        self.payload_bytes_max = payload_bytes_max
        self.window_bytes = window_bytes
        self.holder = Holder("", "", version, in_flight=self.in_flight)

    def room(self) -> tuple[int, int]:
        return super().room()[0], self.window_bytes - self.in_flight.payload_bytes

    def holder_on(self, _shard: Shard) -> Holder:
        return self.holder

    def got(self) -> int:
        return self.in_flight.jobs


class Hall(World):
    """One queue, its takers, and how often anybody was asked."""

    def __init__(self, *takers: Taker) -> None:
        super().__init__()
        self.dispatcher.leave(self.taker)
        self.takers = takers
        for taker in takers:
            self.dispatcher.join(taker)
        self.asked = 0
        give = self.dispatcher.give

        def counted(*arguments: Any) -> int:
            self.asked += 1
            return give(*arguments)

        self.dispatcher.give = counted  # type: ignore[method-assign,assignment]

    @property
    def queue(self) -> Queue:
        return self.shard.queues["mail"]

    def set(self, **changed: Any) -> None:
        decide_update_queue(self.shard, self.core.now(), "mail", QueueSettings(**changed), None)

    async def come(self, *jobs: JobOptions, payload: bytes = b"x", group: str = "") -> int:
        """Pushes and commits jobs, and serves until all is quiet; returns how many asked."""
        before = self.asked
        ties = [Ties(group)] * len(jobs)
        rows = JobColumns([payload] * len(jobs), list(jobs), ties=ties)
        decide_push(self.shard, self.core.now(), Push("mail", JobOptions(), rows=rows))
        self.core.after_decision(self.slot)
        await self.commit()
        while self.dispatcher._renews:  # noqa: ASYNC110  # its next iterations
            await asyncio.sleep(0)
        return self.asked - before

    def left_for(self, taker: Taker) -> int:
        """Has a taker asked now; returns how many jobs it gets."""
        room = taker.room()
        return self.dispatcher.give(self.slot, self.queue, taker, room[0], room)


def named(name: str, **rules: Any) -> JobOptions:
    return JobOptions(name=name, rules=JobRules(**rules))


LETTER, PARCEL = named("letter"), named("parcel")


@pytest.mark.parametrize("held", [0, 1])
async def test_a_name_that_nobody_handles_costs_one_question(held: int) -> None:
    """However many wait, and whether they are idle or have work; and so while it waits."""
    hall = Hall(*(Taker("letter") for _ in range(300)))
    await hall.come(*[LETTER] * 300 * held)
    assert await hall.come(PARCEL) == 1
    assert await hall.come(*[PARCEL] * 500) == 1
    assert await hall.come(LETTER) <= 3
    assert sum(taker.got() for taker in hall.takers) == 300 * held + 1


async def test_many_jobs_that_nobody_handles_cost_no_count_of_those_who_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The shares are of what somebody may have."""
    hall = Hall(*(Taker("letter") for _ in range(300)))
    await hall.come(*[PARCEL] * 500)
    looks = 0
    room = Taker.room

    def counted(taker: Taker) -> tuple[int, int]:
        nonlocal looks
        looks += 1
        return room(taker)

    monkeypatch.setattr(Taker, "room", counted)
    assert await hall.come(LETTER) <= 3
    assert looks < 10


async def test_each_kind_is_asked_once() -> None:
    """Those of another name or version may have what the first ones may not."""
    letters = [Taker("letter") for _ in range(100)]
    old = [Taker("parcel", version="1") for _ in range(100)]
    new = Taker("parcel", version="2")
    hall = Hall(*letters, *old, new)
    assert await hall.come(named("parcel", min_worker_version="2")) == 3
    assert new.got() == 1
    assert await hall.come(named("parcel", min_worker_version="3")) == 3


async def test_of_workers_with_names_of_their_own_those_of_the_job_are_asked() -> None:
    """A job that nobody handled, or one of them, had all of 4,000 asked in one step of 80 ms; and
    so had each push, while a job for nobody lay there."""
    hall = Hall(*(Taker(f"n{number}") for number in range(300)))
    assert await hall.come(PARCEL) == 0
    for _ in range(3):
        assert await hall.come(named("n7")) <= 2
    assert [taker.got() for taker in hall.takers[6:9]] == [0, 3, 0]
    assert await hall.come(*[PARCEL] * 500) == 0
    assert await hall.come(named("n8")) <= 2
    assert hall.takers[8].got() == 1


async def test_a_queue_that_lets_nothing_out_costs_no_more_than_one_question() -> None:
    """At its concurrency, as by its rate."""
    hall = Hall(*(Taker() for _ in range(300)))
    hall.set(concurrency=1)
    assert await hall.come(LETTER, LETTER) <= 2
    assert await hall.come(LETTER) == 0
    assert sum(taker.got() for taker in hall.takers) == 1


async def test_a_queue_that_is_being_deleted_costs_one_question() -> None:
    """Nobody gets its jobs."""
    hall = Hall(*(Taker() for _ in range(300)))
    await hall.come(LETTER)
    hall.queue.deleting = True
    assert await hall.come(LETTER) == 1


async def test_one_whose_room_is_too_small_keeps_no_idle_one_from_a_job() -> None:
    """Who has nothing takes one of any size."""
    busy, idle = [Taker(window_bytes=10) for _ in range(3)], Taker(window_bytes=10)
    hall = Hall(*busy)
    await hall.come(*[LETTER] * 3)
    hall.dispatcher.join(idle)
    await hall.come(LETTER, payload=b"x" * 20)
    assert (idle.got(), [taker.got() for taker in busy]) == (1, [1, 1, 1])


async def test_a_job_behind_one_that_was_too_large_goes_out_with_it() -> None:
    """Those who had missed the large one are asked again."""
    small, large = Taker(payload_bytes_max=10), Taker(payload_bytes_max=30, jobs=1)
    hall = Hall(small, large)
    for payload in (b"x" * 20, b"y"):
        rows = JobColumns([payload], [LETTER])
        decide_push(hall.shard, hall.core.now(), Push("mail", JobOptions(), rows=rows))
    await hall.come(LETTER)
    assert (large.got(), small.got()) == (1, 2)


async def test_nobody_loses_a_turn_by_a_job_for_others() -> None:
    """Jobs that nobody handles come between those that somebody does."""
    hall = Hall(*(Taker("letter") for _ in range(4)))
    for turn in range(4):
        await hall.come(PARCEL)
        await hall.come(LETTER)
        assert [taker.got() for taker in hall.takers] == [1] * (turn + 1) + [0] * (3 - turn)


JOBS = st.builds(
    lambda name, priority, version, slots: JobOptions(
        name=name,
        priority=priority,
        rules=JobRules(min_worker_version=version, slots=slots),
    ),
    st.sampled_from(["a", "b", "c", "d"]),
    st.integers(0, 3),
    st.sampled_from(["", "", "1", "2"]),
    st.sampled_from([None, None, 2, 3]),
)
TAKERS = st.builds(
    lambda names, jobs, version, largest, window: Taker(
        *names, jobs=jobs, version=version, payload_bytes_max=largest, window_bytes=window
    ),
    st.sets(st.sampled_from(["a", "b", "c"]), max_size=2),
    st.integers(1, 6),
    st.sampled_from(["", "1", "2"]),
    st.sampled_from([5, 15, 40]),
    st.sampled_from([10, 20, 100]),
)
PUSHES = st.lists(st.tuples(st.lists(JOBS, min_size=1, max_size=5), st.integers(0, 30)), max_size=6)


@given(
    st.lists(TAKERS, min_size=1, max_size=8),
    PUSHES,
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, ring.FEW_KINDS]),
)
def test_nobody_with_room_would_get_a_job_that_is_left(
    takers: list[Taker],
    pushes: list[tuple[list[JobOptions], int]],
    fair: bool,
    narrow: bool,
    few_kinds: int,
) -> None:
    """After each commit, whatever the jobs need and whatever the takers may have."""

    async def scenario() -> None:
        hall = Hall(*takers)
        hall.set(fair=fair, concurrency=5 if narrow else None)
        for jobs, size in pushes:
            await hall.come(*jobs, payload=b"x" * size, group="g" if fair and size % 2 else "")
            for taker in takers:
                assert min(taker.room()) <= 0 or not hall.left_for(taker)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ring, "FEW_KINDS", few_kinds)
        asyncio.run(scenario())
