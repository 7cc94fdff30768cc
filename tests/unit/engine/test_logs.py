"""Lines that workers write to the logs of their jobs."""

from __future__ import annotations

from jobline_server.engine import limits
from jobline_server.engine.commands import ExtendItem
from jobline_server.engine.decide.admin import decide_cancel, decide_retry
from jobline_server.engine.job_log import LogLine, NewLine
from jobline_server.engine.report_entries import JobLogged
from jobline_server.engine.reported import error_bytes
from jobline_server.engine.values import (
    AckLevel,
    FailAction,
    LogLevel,
    Retention,
    SettleOutcome,
)
from tests.shard_image import image_of
from tests.unit.engine.world import ERROR, WALL_MS

INFO, ERROR_LEVEL = LogLevel.INFO, LogLevel.ERROR


def write(world, job_id, delivery, *texts):
    return world.extend(ExtendItem(job_id, delivery, lines=[NewLine(text) for text in texts]))


def texts_of(world, job_id):
    return [line.text for line in world.shard.jobs[job_id].details.log.lines]


def test_lines_have_a_time_a_level_and_their_attempt(world):
    """The time is the worker's if it gives one."""
    job_id = world.row()
    delivery = world.one().delivery
    world.extend(
        ExtendItem(job_id, delivery, lines=[NewLine("now"), NewLine("bad", ERROR_LEVEL, 7)])
    )
    assert list(world.shard.jobs[job_id].details.log.lines) == [
        LogLine(WALL_MS, INFO, "now", 1),
        LogLine(7, ERROR_LEVEL, "bad", 1),
    ]
    world.check()


def test_a_member_of_a_lot_leaves_it_with_its_first_line(world):
    first_id = world.plain(b"1", b"2").first_id
    delivery = world.lease().runs[0].delivery
    assert write(world, first_id + 1, delivery, "a") == []
    assert texts_of(world, first_id + 1) == ["a"]
    assert first_id not in world.shard.jobs
    world.check()


def test_lines_of_a_lost_lease_are_refused(world):
    """As any settle: another worker may have the job."""
    job_id = world.row()
    delivery = world.one().delivery
    assert write(world, job_id, delivery + 1, "a") == [(0, SettleOutcome.LEASE_LOST)]
    assert write(world, 4711, 1, "a") == [(0, SettleOutcome.NOT_FOUND)]
    assert world.shard.jobs[job_id].details.log is None


def test_a_job_that_is_to_be_cancelled_still_writes(world):
    """Its worker says how it stops."""
    job_id = world.row()
    delivery = world.one().delivery
    decide_cancel(world.shard, world.now, [job_id])
    assert write(world, job_id, delivery, "stopping") == [(0, SettleOutcome.CANCELLED)]
    assert texts_of(world, job_id) == ["stopping"]


def test_a_log_goes_on_over_attempts_and_ends_with_the_job(world):
    job_id = world.row()
    delivery = world.one().delivery
    write(world, job_id, delivery, "first")
    world.fail(job_id, delivery, retry_after_ms=0)
    again = world.one()
    write(world, job_id, again.delivery, "second")
    world.fail(job_id, again.delivery, then=FailAction.DEAD)
    _, record = world.ended()[job_id]
    assert [(line.text, line.attempt) for line in record.log.lines] == [("first", 1), ("second", 2)]
    assert (world.shard.report_bytes, world.shard.load.report_bytes) == (0, 0)


def test_a_retried_job_continues_its_log(world):
    job_id = world.row()
    delivery = world.one().delivery
    write(world, job_id, delivery, "before")
    world.fail(job_id, delivery, then=FailAction.DEAD)
    state, record = world.ended()[job_id]
    decide_retry(world.shard, world.now, [(record, state)])
    world.commit()
    write(world, job_id, world.one().delivery, "after")
    assert texts_of(world, job_id) == ["before", "after"]
    assert [line.text for line in record.log.lines] == ["before"]
    world.check()


def test_logs_count_towards_the_bytes_of_the_server(world):
    """A million jobs with a log each fill no memory without end: pushes are refused first."""
    job_id = world.row()
    delivery = world.one().delivery
    write(world, job_id, delivery, "x" * 900)
    load = world.shard.load
    assert load.report_bytes == 900 + limits.LOG_LINE_EXTRA_BYTES
    assert load.held_bytes() == load.payload_bytes + load.report_bytes
    world.shard.leave_load()
    assert load.held_bytes() == 0


def test_no_log_grows_while_the_server_is_full(world):
    """Its oldest lines make room; a job without a log gets none. Nothing is refused."""
    with_log, without = world.row(), world.row()
    first, second = world.lease(2).jobs
    write(world, with_log, first.delivery, "old", "new")
    load = world.shard.load
    load.waiting_bytes_max = load.held_bytes()
    assert write(world, with_log, first.delivery, "abc") == []
    assert write(world, without, second.delivery, "a") == []
    assert texts_of(world, with_log) == ["new", "abc"]
    assert texts_of(world, without) == []
    assert world.shard.jobs[without].details.log.dropped == 1
    assert image_of(world.recovered()) == image_of(world.shard)
    load.waiting_bytes_max += 1
    write(world, without, second.delivery, "b")
    assert texts_of(world, without) == ["b"]


def test_a_retry_needs_room_for_the_log(world):
    job_id = world.row()
    delivery = world.one().delivery
    write(world, job_id, delivery, "x" * 1_000)
    world.fail(job_id, delivery, then=FailAction.DEAD)
    _, record = world.ended()[job_id]
    assert record.held_bytes() == 1 + 1_000 + limits.LOG_LINE_EXTRA_BYTES + error_bytes(ERROR)


def test_lines_of_a_job_that_is_never_written_stay_in_memory(world):
    job_id = world.row(level=AckLevel.MEMORY)
    delivery = world.one().delivery
    write(world, job_id, delivery, "a")
    assert texts_of(world, job_id) == ["a"]
    assert not any(isinstance(fact, JobLogged) for _, fact in world.journal)


def test_recovered_logs_are_those_that_were_written(world):
    kept, gone = world.row(), world.row(retention=Retention(remove_on_complete=True))
    first, second = world.lease(2).jobs
    write(world, kept, first.delivery, "a", "b")
    write(world, gone, second.delivery, "c")
    world.ack([(gone, second.delivery)])
    assert image_of(world.recovered()) == image_of(world.shard)
    assert world.recovered().report_bytes == world.shard.report_bytes > 0
