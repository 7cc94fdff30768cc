"""Dead jobs that are put back by themselves: when, how often, and which are not."""

from __future__ import annotations

import pytest

from jobline_server.engine import effective, limits
from jobline_server.engine.dead_letters import AutoRetry, DeadLetters
from jobline_server.engine.decide.admin import decide_retry
from jobline_server.engine.records import JobRecord
from jobline_server.engine.rules import DeliveryMode, JobRules
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    EndReason,
    FailAction,
    JobOptions,
    JobState,
    QueueSettings,
    Retention,
)
from tests.unit.engine.world import World

DEAD = JobState.DEAD
ON = QueueSettings(dead_letters=DeadLetters(auto_retry=AutoRetry(1_000, 2)))


def die(world: World) -> JobRecord:
    """Leases the only job and fails it for good; returns how it is kept."""
    world.commit()
    leased = world.one()
    world.fail(leased.id, leased.delivery, then=FailAction.DEAD)
    state, record = world.ended()[leased.id]
    assert state is DEAD
    return record


def test_each_retry_waits_twice_as_long_and_the_last_death_is_final():
    world = World()
    world.settings(dead_letters=ON.dead_letters)
    world.row()
    waits: list[int] = []
    while (record := die(world)).retry_ms:
        waits.append(record.retry_ms - record.ended_ms)
        assert decide_retry(world.shard, world.now, [(record, DEAD)], automatic=True) == []
    assert waits == [1_000, 2_000]
    assert record.auto_retries == 2


def test_retry_by_hand_counts_from_the_start():
    world = World()
    world.settings(dead_letters=ON.dead_letters)
    world.row()
    decide_retry(world.shard, world.now, [(die(world), DEAD)], automatic=True)
    decide_retry(world.shard, world.now, [(die(world), DEAD)])
    record = die(world)
    assert (record.auto_retries, record.retry_ms - record.ended_ms) == (0, 1_000)


def test_job_that_died_while_it_was_off_stays_dead():
    world = World()
    world.row()
    record = die(world)
    assert record.retry_ms == 0


def test_wait_is_never_longer_than_a_job_can_be_delayed():
    rule = AutoRetry(limits.AUTO_RETRY_FIRST_DELAY_MS_MAX, limits.AUTO_RETRIES_MAX)
    assert rule.retry_ms(7, limits.AUTO_RETRIES_MAX - 1) == 7 + limits.DELAY_MS_MAX
    assert rule.retry_ms(7, limits.AUTO_RETRIES_MAX) is None


@pytest.mark.parametrize(
    "reason",
    [
        EndReason.INTERRUPTED,
        EndReason.EXPIRED,
        EndReason.RETRY_UNTIL_PASSED,
        EndReason.DEPENDENCY_FAILED,
    ],
)
def test_some_deaths_are_final(reason: EndReason):
    """G7: a job that may run once only is never put back by itself."""
    assert effective.auto_retry(DEFAULT_OPTIONS, ON, reason) is None
    assert effective.auto_retry(DEFAULT_OPTIONS, ON, EndReason.STALLED) is not None


def test_jobs_that_run_once_are_never_put_back_by_themselves():
    """G7: not even those whose only attempt failed."""
    once = JobOptions(rules=JobRules(delivery_mode=DeliveryMode.ONCE))
    assert effective.auto_retry(once, ON, EndReason.EXPLICIT_FAIL) is None


def test_cancelled_jobs_are_not_put_back():
    world = World()
    world.settings(dead_letters=ON.dead_letters)
    world.row()
    world.commit()
    leased = world.one()
    world.fail(leased.id, leased.delivery, then=FailAction.CANCEL)
    assert world.ended()[leased.id][1].retry_ms == 0


def test_age_is_that_of_the_dead_letters_then_of_the_retention_then_a_week():
    retention = Retention(age_ms=5)
    letters = DeadLetters(expire_after_ms=7)
    forever = DeadLetters(keep_forever=True)
    assert effective.dead_age_ms(QueueSettings()) == limits.STALE_AFTER_DEAD_MS_DEFAULT
    assert effective.dead_age_ms(QueueSettings(retention=retention)) == 5
    assert effective.dead_age_ms(QueueSettings(retention=retention, dead_letters=letters)) == 7
    assert effective.dead_age_ms(QueueSettings(retention=retention, dead_letters=forever)) is None


def test_bytes_that_are_kept():
    assert effective.dead_bytes_max(QueueSettings()) == limits.DEAD_KEPT_BYTES_MAX
    letters = DeadLetters(max_bytes=1 << 20)
    assert effective.dead_bytes_max(QueueSettings(dead_letters=letters)) == 1 << 20
