"""Each invariant of limits notices when it is broken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobline_server.engine.allowance import Allowance
from jobline_server.engine.decide.limiters import decide_put_limiter
from jobline_server.engine.limit_invariants import (
    allowances_fit_settings,
    closed_lanes_are_in_line,
    limiters_count_what_is_active,
)
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import JobOptions, QueueSettings
from tests.unit.engine.gates_by_hand import close_gate


@pytest.fixture
def queue(world):
    """A queue with a rate of one a second."""
    world.settings(rate=RateLimit(1))
    world.check()
    return world.queue()


def test_limits_that_are_not_in_force_are_noticed(world, queue):
    allowance, queue.allowance = queue.allowance, None
    assert allowances_fit_settings(world.shard) == "queue q has the allowance None"
    queue.allowance = allowance
    queue.settings = replace(queue.settings, concurrency=1)
    assert "queue q is limited to" in allowances_fit_settings(world.shard)
    queue.settings, queue.allowance = QueueSettings(), Allowance()
    assert "queue q has the allowance" in allowances_fit_settings(world.shard)


def test_tokens_that_nobody_has_are_noticed(world, queue):
    world.shard.clocks.advance(world.now)
    queue.allowance.bucket._units = -1
    assert allowances_fit_settings(world.shard) == "queue q has -1 of 1 tokens"


def test_concurrency_alone_has_no_tokens(world):
    world.settings(concurrency=1)
    assert allowances_fit_settings(world.shard) == ""


@pytest.fixture
def limited_lot(world):
    """Two jobs of a limiter that lets one be active, which is; the lane of the other is closed."""
    decide_put_limiter(world.shard, world.now, "api", None, 1)
    world.plain(b"x", b"x", options=JobOptions(rules=JobRules(limiters=("api",))))
    world.lease(1)
    world.lease(1)
    world.check()
    return world.shard.limiters.find("api")


def test_active_job_that_its_limiter_does_not_count_is_noticed(world, limited_lot):
    limited_lot.active = 0
    assert limiters_count_what_is_active(world.shard) == "limiter api does not count 1 active jobs"


def test_closed_lane_that_nobody_opens_is_noticed(world, limited_lot):
    limited_lot.line.clear()
    assert "is closed and in no line" in closed_lanes_are_in_line(world.shard)


def test_gate_that_opens_by_itself_needs_no_line(world):
    world.plain(b"x")
    close_gate(world.shard, world.queue(), (0, "", 0, None, ""), 9_000_000)
    assert closed_lanes_are_in_line(world.shard) == ""
