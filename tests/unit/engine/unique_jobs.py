"""Short words for pushes with unique keys, for the tests of these."""

from __future__ import annotations

from typing import Any

from jobline_server.engine.commands import RefusalKind
from jobline_server.engine.decide.unique_holders import key_holder
from jobline_server.engine.rules import JobRules
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.unique_rule import UniqueMode, UniqueRule
from jobline_server.engine.values import (
    JobOptions,
    JobState,
    PushOutcome,
)
from tests.pushed_outcomes import outcomes_of
from tests.pushed_rows import NewJob
from tests.shard_image import counting_at, image_of
from tests.unit.engine.world import WALL_MS, World

Mode, Out, S = UniqueMode, PushOutcome, JobState
REPLACING = [Mode.REPLACE, Mode.DEBOUNCE, Mode.AFTER_ACTIVE, Mode.SUPERSEDE]


def options(mode: UniqueMode | None = None, **rule: int) -> JobOptions:
    return JobOptions(rules=JobRules(unique=UniqueRule(mode, **rule)))


def new(
    mode: UniqueMode | None = None, *, key: str = "u", payload: bytes = b"x", **rest: Any
) -> NewJob:
    delay_ms, job_key = rest.pop("delay_ms", 0), rest.pop("job_key", "")
    at_ms = rest.pop("at_ms", WALL_MS)
    run_at_ms = at_ms + delay_ms if delay_ms else 0
    return NewJob(
        payload,
        options(mode, **rest),
        job_key,
        run_at_ms,
        ties=Ties(unique_key=key) if key else NO_TIES,
    )


def push(world: World, *jobs: NewJob, **rest: Any) -> list[tuple[PushOutcome | RefusalKind, int]]:
    """The outcome and the id of each job; checks all invariants, and a recovery."""
    found = outcomes_of(world.push(jobs=jobs, **rest), len(jobs))
    world.check()
    return found


def one(
    world: World, mode: UniqueMode | None = None, **rest: Any
) -> tuple[PushOutcome | RefusalKind, int]:
    return push(world, new(mode, **rest))[0]


def holder_of(world: World, key: str = "u") -> int | None:
    return key_holder(world.shard, world.now, "q", key)


def check_recovery(world: World) -> None:
    """Whatever a test did, the journal yields the same shard."""
    world.commit()
    aged_ms = world.shard.age.at(world.now)
    images = [counting_at(image_of(shard), aged_ms) for shard in (world.recovered(), world.shard)]
    assert images[0] == images[1]
    world.check()
