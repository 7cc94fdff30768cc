"""What keeps a job that waits for its unique key."""

from __future__ import annotations

from jobline_server.engine.commands import Push
from jobline_server.engine.rules import JobRules
from jobline_server.engine.ties import Ties
from jobline_server.engine.unique_rule import UniqueMode, UniqueRule
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobOptions, JobState
from jobline_server.runtime.obstacles import ObstacleKind
from jobline_server.runtime.runtime import Runtime
from tests.pushed_rows import NewJob, rows_of
from tests.unit.runtime.commits.test_commits import a_pull

REPLACE = JobOptions(rules=JobRules(unique=UniqueRule(UniqueMode.REPLACE)))


async def test_a_parked_job_names_the_holder_of_its_key(runtime: Runtime) -> None:
    async def push() -> int:
        rows = rows_of([NewJob(b"x", REPLACE, ties=Ties(unique_key="k"))])
        pushed = await runtime.pushes.push(
            Push("q", DEFAULT_OPTIONS, rows, level=AckLevel.BUFFERED)
        )
        await runtime.core.commits.commit_once()
        return pushed.first_id

    holder = await push()
    leased = await a_pull(runtime, "q")
    assert leased.count() == 1
    state, obstacles = await runtime.explainer.explain_job(await push())
    assert (state, [one.kind for one in obstacles]) == (JobState.BLOCKED, [ObstacleKind.KEY_HELD])
    assert obstacles[0].message == f"job {holder} holds its unique key 'k' and has not ended"
