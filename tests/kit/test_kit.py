"""The fixture `jobline`: a server of the test's own, whose time the test moves."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from jobline import Client, Context, Dead, JobState, JobType, Snooze, Worker, job
from jobline_server.config import ConfigurationError
from jobline_server.testing import AsyncJobline, Jobline, running_server
from jobline_server.testing.given_settings import given_settings

START = datetime(2026, 3, 1, 9, tzinfo=UTC)


@job(queue="numbers")
def double(number: int) -> int:
    return 2 * number


@pytest.fixture
def variables_of_another_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the shell of somebody who works on a real one."""
    for name, value in {
        "JOBLINE_COMMAND": "/opt/jobline",
        "JOBLINE_TOKEN": "jl_x",
        "JOBLINE_TLS": "1",
        "JOBLINE_CLIENT_CERTIFICATE": "/nowhere.pem",
        "JOBLINE_TLS_CERTIFICATE": "/nowhere.pem",
        "JOBLINE_CONFIG": "/nowhere.toml",
        "JOBLINE_DATA": "/nowhere",
        "JOBLINE_HISTORY": "/nowhere",
        "JOBLINE_MAX_PAYLOAD_BYTES": "1KiB",
        "JOBLINE_NO_SUCH": "x",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("variables_of_another_server")
class TestEnvironment:
    """A test is the same in every shell."""

    def test_the_environment_sets_nothing(self, jobline: Jobline) -> None:
        with Client() as client:
            pushed = client.push("mail", b"x" * 2_000)
        assert jobline.client.jobs.get(pushed.id).queue == "mail"

    async def test_nor_for_a_server_in_the_loop_of_a_test(self) -> None:
        async with running_server() as server:
            assert server.address.startswith("127.0.0.1:")
            assert server.server.settings.max_payload_bytes > 1_024


def test_a_wrong_setting_of_a_test_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"shards: .*given: shards=-1"):
        given_settings({"shards": -1})


def test_each_test_has_an_empty_server(jobline: Jobline) -> None:
    assert list(jobline.client.queues.list()) == []
    jobline.client.push("mail", b"")


def test_each_test_has_an_empty_server_again(jobline: Jobline) -> None:
    assert list(jobline.client.queues.list()) == []


@pytest.mark.jobline(start="2026-03-01T09:00:00Z", max_payload_bytes="1KiB")
def test_a_mark_sets_the_clock_and_settings(jobline: Jobline) -> None:
    assert jobline.now == START
    assert jobline.advance("90s") == START + timedelta(seconds=90)
    assert jobline.advance_to(START + timedelta(hours=1)) == START + timedelta(hours=1)
    with pytest.raises(ValueError, match="the clock goes only forward"):
        jobline.advance_to(START)
    with pytest.raises(Exception, match="payload"):
        jobline.client.push("mail", b"x" * 2_000)


def test_the_clock_begins_now_without_one(jobline: Jobline) -> None:
    assert abs(jobline.now - datetime.now(UTC)) < timedelta(minutes=5)


def test_a_drain_says_what_it_waits_for(jobline: Jobline) -> None:
    jobline.client.push("numbers", 1, name="unknown")
    with pytest.raises(AssertionError, match=r"numbers: 1 READY.*unknown"):
        jobline.drain(double, timeout=0.2)


def test_a_drain_does_what_handlers_push(jobline: Jobline) -> None:
    worker = Worker()

    @worker.handler("steps")
    def step(number: int) -> None:
        if number:
            with Client() as client:
                client.push("steps", number - 1)

    jobline.client.push("steps", 3)
    jobline.drain(worker)
    assert len(jobline.pushed(queue="steps", state="completed")) == 4


def test_a_drain_takes_one_worker_or_jobs(jobline: Jobline) -> None:
    with pytest.raises(ValueError, match="one worker"):
        jobline.drain(double, Worker(jobs=[double]))


def test_a_worker_that_cannot_start_is_an_error_of_the_test(jobline: Jobline) -> None:
    with pytest.raises(Exception, match="at least one handler"):
        jobline.drain(Worker())


def test_waits_for_threads_of_the_test(jobline: Jobline) -> None:
    thread = threading.Thread(target=jobline.client.push, args=("mail", b"x"))
    thread.start()
    (found,) = jobline.wait_for("queue:mail", "ready")
    thread.join()
    assert found.payload == b"x"
    with pytest.raises(AssertionError, match="in any state: 1 READY"):
        jobline.wait_for(queue="mail", state="dead", timeout=0.05)


def test_one_job_has_its_outcome(jobline: Jobline) -> None:
    def handler(what: str, context: Context) -> str:
        if what == "dead":
            raise Dead("no")
        if what == "snooze":
            raise Snooze("1h")
        return f"{context.attempt} {context.headers['tenant']} {context.checkpoint_value()}"

    done = jobline.work_one(
        handler, "go", attempt=3, checkpoint={"at": 1}, headers={"tenant": "acme"}
    )
    assert done.result_value(str) == "3 acme {'at': 1}"
    assert jobline.work_one(handler, "dead").state is JobState.DEAD
    assert jobline.work_one(handler, "snooze").run_at == jobline.now + timedelta(hours=1)
    assert jobline.work_one(double, 21, delay="1h").result_value(int) == 42


def test_one_job_has_no_more_attempts_than_it_has(jobline: Jobline) -> None:
    with pytest.raises(AssertionError, match="attempt 4 cannot be made: the job is DEAD"):
        jobline.work_one(double, 1, attempt=4)
    with pytest.raises(ValueError, match="the first is 1"):
        jobline.work_one(double, 1, attempt=0)
    with pytest.raises(ValueError, match="for producers alone"):
        jobline.work_one(JobType(queue="q", name="n"), 1)


async def test_a_coroutine_awaits_what_takes_time(jobline: AsyncJobline) -> None:
    """Handlers run in its loop."""
    here = threading.get_ident()

    @job(queue="async")
    async def handler(number: int) -> bool:
        return threading.get_ident() == here

    await handler.push(jobline.client, 1)
    await jobline.drain(handler)
    (done,) = await jobline.wait_for(queue="async", state="completed")
    assert done.result_value(bool)
    assert (await jobline.work_one(handler, 2)).result_value(bool)
    before = jobline.now
    assert await jobline.advance("1h") == before + timedelta(hours=1)
    assert await jobline.advance_to(before + timedelta(hours=2)) == jobline.now
    with pytest.raises(AssertionError, match="no job matches"):
        await jobline.wait_for(queue="other", timeout=0.01)
    await jobline.drain()
