"""Cancels with what is below, held against a plain computation."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobline_server.engine.commands import Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.rules import NO_RULES, DependencyPolicy
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobState
from jobline_server.runtime.calls import below as below_module
from jobline_server.runtime.calls.below import Below
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit, Selection
from tests.pushed_rows import NewJob, rows_of
from tests.unit.runtime.conftest import working

MOST = 12
# What is above a cancelled job goes on waiting, or it would end as well.
WAITS = replace(
    DEFAULT_OPTIONS, rules=replace(NO_RULES, on_dependency_failure=DependencyPolicy.WAIT)
)


@st.composite
def graphs(draw: st.DrawFn) -> list[tuple[int, ...]]:
    """Of each job the earlier ones that it waits for."""
    few = st.lists(st.integers(0, MOST), max_size=4)
    drawn = draw(st.lists(few, min_size=2, max_size=MOST))
    return [
        tuple(dict.fromkeys(at % index for at in own)) if index else ()
        for index, own in enumerate(drawn)
    ]


def goes(graph: Sequence[Collection[int]], named: Collection[int]) -> set[int]:
    """The jobs that are cancelled: those named, and any that only cancelled ones wait for."""
    gone = {*named}
    while True:
        more = {
            child
            for child in range(len(graph))
            if any(child in graph[one] for one in gone)
            and all(one in gone for one, own in enumerate(graph) if child in own)
        }
        if more <= gone:
            return gone
        gone |= more


async def push(runtime: Runtime, graph: Sequence[tuple[int, ...]]) -> list[int]:
    rows = rows_of([NewJob(b"x", WAITS, parent_indexes=own) for own in graph])
    pushed = await runtime.pushes.push(
        Push("q", DEFAULT_OPTIONS, rows=rows, level=AckLevel.BUFFERED)
    )
    return [*range(pushed.first_id, pushed.first_id + len(graph))]


async def cancel_some(graph: list[tuple[int, ...]], picks: list[int]) -> None:
    named = {pick % len(graph) for pick in picks}
    with tempfile.TemporaryDirectory() as directory:
        async with working(Path(directory), ManualClock()) as runtime:
            ids = await push(runtime, graph)
            chosen = Selection(ids=tuple(ids[at] for at in named))
            counts = []
            for dry_run in (True, False):
                done = await runtime.bulk.cancel_jobs(
                    chosen, below=True, dry_run=dry_run, audit=Audit()
                )
                counts.append((done.count, done.skipped_ids))
            shard = runtime.core.slots[0].shard
            gone = {at for at, one in enumerate(ids) if shard.state_of(one) is None}
            assert gone == goes(graph, named)
            assert counts == [(len(gone), [])] * 2


@settings(max_examples=25, deadline=None)
@given(graphs(), st.lists(st.integers(0, MOST), min_size=1, max_size=3))
def test_it_cancels_what_only_cancelled_jobs_wait_for(
    graph: list[tuple[int, ...]], picks: list[int]
) -> None:
    """A dry run says how many."""
    asyncio.run(cancel_some(graph, picks))


async def test_a_job_with_many_below_is_looked_at_in_parts(runtime: Runtime) -> None:
    """None is looked at twice, and what has ended is not taken."""
    payloads = Payloads.of([b"x"] * 900)
    plain = Push("q", DEFAULT_OPTIONS, payloads=payloads, level=AckLevel.BUFFERED)
    first_id = (await runtime.pushes.push(plain)).first_id
    ids = range(first_id, first_id + 900)
    parents = Push(
        "q",
        DEFAULT_OPTIONS,
        rows=rows_of([NewJob(b"x", DEFAULT_OPTIONS, ties=Ties(parents=tuple(ids)))]),
        level=AckLevel.BUFFERED,
    )
    root = (await runtime.pushes.push(parents)).first_id
    below = Below(runtime.core.slots)
    below.note([root])
    found: list[int] = []
    while not below.is_empty():
        part = below.take(100)
        assert len(part) <= 100
        found += part
    assert sorted(found) == [*ids]
    assert runtime.core.slots[0].shard.state_of(root) is JobState.BLOCKED


async def test_fewer_are_looked_at_together_that_many_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dry run that looked at a thousand, each for a thousand jobs, took a step of 30 ms."""
    monkeypatch.setattr(below_module, "WAITING_A_JOB", 1)
    async with working(tmp_path, ManualClock()) as runtime:
        ids = await push(runtime, [(), (), (), *[(0, 1, 2)] * 5])
        below = Below(runtime.core.slots)
        below.note(ids[3:])
        looks = [sorted(below.take(12)) for _ in range(2)]
        assert looks == [ids[1:3], ids[:1]]
        assert below.is_empty()
