"""Each invariant of limits notices when it is broken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobline_server.engine.limit_invariants import allowances_fit_settings
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.values import QueueSettings


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
    queue.settings = QueueSettings()
    assert "queue q has the allowance" in allowances_fit_settings(world.shard)


def test_tokens_that_nobody_has_are_noticed(world, queue):
    world.shard.clocks.advance(world.now)
    queue.allowance.bucket._units = -1
    assert allowances_fit_settings(world.shard) == "queue q has -1 of 1 tokens"


def test_concurrency_alone_has_no_tokens(world):
    world.settings(concurrency=1)
    assert allowances_fit_settings(world.shard) == ""
