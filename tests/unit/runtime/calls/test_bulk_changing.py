"""Calls on many jobs that change while the loop is free between two parts of a slice."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobline_server.engine.commands import Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobState
from jobline_server.runtime.calls import bulk
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.views import Audit, JobFilter, Selection
from tests.unit.runtime.commits.test_commits import a_pull
from tests.unit.runtime.conftest import working

JOBS = 1_000


@pytest.mark.parametrize("named", [False, True])
async def test_a_job_that_left_the_states_of_a_filter_is_let_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    """A worker takes jobs between two parts: they run, and those that wait were meant. Who names
    jobs means them whatever they do.
    """
    async with working(tmp_path, ManualClock()) as busy:
        payloads = Payloads.of([b"x"] * JOBS)
        command = Push("mail", DEFAULT_OPTIONS, payloads=payloads, level=AckLevel.FSYNCED)
        first_id = (await busy.pushes.push(command)).first_id
        taken: list[int] = []

        class Pace:
            async def rest(self) -> None:
                if not taken:
                    taken.append((await a_pull(busy, "mail")).count())

        monkeypatch.setattr(bulk, "Pace", Pace)
        chosen = Selection(filter=JobFilter(queue="mail", states=frozenset({JobState.READY})))
        if named:
            chosen = Selection(ids=tuple(range(first_id, first_id + JOBS)))
        result = await busy.bulk.cancel_jobs(chosen, dry_run=False, audit=Audit())
        (running,) = taken
        assert running > 0
        assert (result.requested, result.count) == (running if named else 0, JOBS - running)
