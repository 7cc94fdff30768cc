"""What a shard keeps: its own time, and its part of the load."""

from __future__ import annotations

from dataclasses import fields, replace

from jobline_server.engine.age import Age
from jobline_server.engine.commands import Push
from jobline_server.engine.decide.messages import decide_send
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.load import Load
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.producers import Call
from jobline_server.engine.rules import JobRules
from jobline_server.engine.shard import Shard
from jobline_server.engine.shard_messages import PushJobs
from jobline_server.engine.ties import Ties
from jobline_server.engine.unique_rule import UniqueMode, UniqueRule
from jobline_server.engine.values import DEFAULT_OPTIONS, Now
from tests.pushed_rows import NewJob, rows_of

# All but limits, and what is of each shard or shared by all.
NO_TOTALS = {"limiters", "batches", "batch_kept_ms", "wanted"}
TOTALS = [
    each for each in fields(Load) if each.name not in NO_TOTALS and not each.name.endswith("_max")
]
THROTTLES = JobRules(unique=UniqueRule(UniqueMode.THROTTLE, 60_000))


def test_time_of_a_shard_does_not_go_back():
    """A fact that was decided before the newest does not set it back."""
    age = Age()
    age.note(2_000, 1_500)
    age.note(9_000, 1_000)
    assert (age.last_ms, age.behind_ms) == (1_500, 500)
    assert age.at(Now(wall_ms=2_500, mono_ms=10)) == 2_000


def test_a_shard_that_leaves_takes_its_part_of_the_load_along_and_nothing_else():
    """Jobs with keys and groups, or that wait for others, request ids, calls, and messages."""
    load = Load()
    stays, leaves = Shard(1, epoch=1, load=load), Shard(2, epoch=1, load=load)
    payloads, now = Payloads.of([b"xy"]), Now(wall_ms=1_000, mono_ms=10)

    def fill(shard: Shard) -> None:
        throttles = replace(DEFAULT_OPTIONS, rules=THROTTLES)
        unique = NewJob(b"x", throttles, ties=Ties(unique_key="u"))
        child = NewJob(b"x", DEFAULT_OPTIONS, parent_indexes=(0,))
        rows = rows_of([NewJob(b"x", DEFAULT_OPTIONS, "key", ties=Ties("g")), unique, child])
        decide_push(shard, now, Push("q", DEFAULT_OPTIONS, rows, payloads, request_id=b"r"))
        call = Call(b"p" * 16, 1, 1, 7)
        decide_push(shard, now, Push("q", DEFAULT_OPTIONS, payloads=payloads, calls=(call,)))
        decide_send(shard, now, 3, [PushJobs("q", DEFAULT_OPTIONS, payloads)])

    fill(stays)
    before = replace(load)
    fill(leaves)
    assert load == Load(**{each.name: 2 * getattr(before, each.name) for each in TOTALS})
    left, stayed = [[*shard.jobs] for shard in (leaves, stays)]
    assert any(job_id in load.wanted for job_id in left)
    leaves.leave_load()
    assert (load, leaves.load) == (before, Load())
    assert not any(job_id in load.wanted for job_id in left)
    assert any(job_id in load.wanted for job_id in stayed)
