"""Jobs that depend on others, in short words."""

from __future__ import annotations

from dataclasses import replace

from jobline_server.engine import limits
from jobline_server.engine.decide.dependencies import release_dependents
from jobline_server.engine.rules import DependencyPolicy, JobRules
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    FailAction,
    JobState,
)
from tests.pushed_rows import NewJob
from tests.unit.engine.world import leases_of

FAIL, CANCEL, IGNORE, WAIT, CONTINUE = DependencyPolicy
BLOCKED, READY, SCHEDULED = JobState.BLOCKED, JobState.READY, JobState.SCHEDULED
DEAD, CANCELLED, COMPLETED = JobState.DEAD, JobState.CANCELLED, JobState.COMPLETED


def child(*parents, policy=None, timeout_ms=None, indexes=(), **rest):
    """A new job that depends on others."""
    rules = JobRules(on_dependency_failure=policy, block_timeout_ms=timeout_ms)
    options = replace(DEFAULT_OPTIONS, rules=rules)
    return NewJob(b"c", options, ties=Ties(parents=parents), parent_indexes=indexes, **rest)


def push(world, *jobs, **rest):
    """Pushes, and returns the id of the first new job."""
    return world.push(jobs=jobs, **rest).first_id


def settle(world, how, *ids):
    """Leases until these jobs are leased, and ends them."""
    holder = world.session()
    for item in leases_of(world.lease(holder=holder)):
        if item[0] in ids:
            if how == "ack":
                world.ack([item])
            else:
                world.fail(*item, then=FailAction.DEAD)


def told(world, limit=limits.SLICE_DEPENDENTS):
    """All that follows is decided; says how many slices that took."""
    slices = 1
    while release_dependents(world.shard, world.now, limit):
        slices += 1
    world.commit()
    world.check()
    return slices


def is_free(world):
    """Nobody waits for anything."""
    held = world.shard.dependencies
    return not (held.awaited or held.edges or held.pending or held.ended or held.to_look_up)
