"""What a worker logs, for people who look at a terminal."""

from __future__ import annotations

import logging
import traceback

import pytest

from jobline import Dead, JobError, Retry, Worker
from jobline._worker import log
from jobline.v1 import job_service_pb2 as pb
from tests.client.live.tiny_store import COMPLETED, DEAD, SCHEDULED
from tests.client.live.working import holding, program, said, working

FAILS = """
import sys
from jobline import Worker
worker = Worker(sys.argv[1], id="w1")

@worker.handler("mail", "welcome")
def welcome(payload):
    worker.stop()
    raise ValueError("no such address")

worker.run()
"""


@pytest.fixture(autouse=True)
def heard(caplog):
    """The records of the library, from INFO on."""
    caplog.set_level(logging.INFO, "jobline")
    caplog.set_level(logging.INFO, "jobline.worker.jobs")  # `jobline work` may have silenced it
    return caplog


def levels(caplog, text):
    return [record.levelname for record in caplog.records if text in record.getMessage()]


def logged(caplog):
    return [record.getMessage() for record in caplog.records]


async def test_a_connection_is_logged_and_the_next_one_too(tiny, caplog):
    """Trial B8: a worker logs that it connected, to what and with which queues; and again."""
    worker = Worker(tiny.address, id="w1")
    worker.handler("mail")(lambda _payload: None)
    worker.handler("numbers")(lambda _payload: None)
    async with working(worker):
        await tiny.until(lambda: tiny.ports)
        (port,) = tiny.ports
        port.break_off()
        await tiny.until(lambda: tiny.calls["Stream"] == 2 and tiny.ports)
        tiny.push("mail", b"x")
        await tiny.until(lambda: tiny.jobs(COMPLETED))
    assert f"connected to {tiny.address} as w1; queues mail, numbers" in caplog.text
    assert levels(caplog, f"the connection to {tiny.address} broke") == ["WARNING"]
    assert levels(caplog, f"connected again to {tiny.address} after ") == ["INFO"]


async def test_a_failed_attempt_is_a_warning_with_its_traceback(tiny, caplog):
    """Trial B8: what a handler raises is logged as a WARNING, with the traceback; that the job had
    no attempt left, as an ERROR when the server has confirmed it.
    """

    def fails(_payload):
        raise ValueError("no such address")

    worker = Worker(tiny.address)
    worker.handler("mail", "welcome")(fails)
    async with working(worker):
        (first,) = tiny.push("mail", b"x", name="welcome", max_attempts=1)
        await tiny.until(lambda: tiny.jobs(DEAD))
        await said(caplog, "jobline.worker.jobs", f"job {first} is dead")
    text = f"attempt 1 of job {first} (mail/welcome) failed: ValueError: no such address"
    (record,) = [record for record in caplog.records if text in record.getMessage()]
    assert record.levelname == "WARNING"
    assert record.exc_info is not None
    assert record.exc_info[0] is ValueError
    frames = traceback.extract_tb(record.exc_info[2])
    assert [frame.name for frame in frames] == ["fails"]  # not how the handler came to be called
    assert levels(caplog, f"job {first} is dead: ValueError: no such address") == ["ERROR"]


async def test_outcomes_are_logged_by_what_they_mean(tiny, caplog):
    """Trial B8: a retry that a handler asked for is a WARNING, a job sent to the dead letters an
    ERROR.
    """
    outcomes = {"busy": Retry(5, error=JobError("Busy", "come later")), "bad": Dead("no recipient")}

    def refuses(_payload, context):
        raise outcomes[context.name]

    worker = Worker(tiny.address)
    worker.handler("mail", "busy")(refuses)
    worker.handler("mail", "bad")(refuses)
    async with working(worker):
        tiny.push("mail", b"x", name="busy")
        (bad,) = tiny.push("mail", b"x", name="bad")
        await tiny.until(lambda: tiny.jobs(DEAD) and tiny.jobs(SCHEDULED))
        await said(caplog, "jobline.worker.jobs", f"job {bad} is dead")
    assert levels(caplog, "failed: come later") == ["WARNING"]
    assert levels(caplog, f"job {bad} is dead: Dead: no recipient") == ["ERROR"]


async def test_a_program_without_logging_hears_its_worker(tiny):
    """Trial B8: `run()` logs to stderr where nobody has set up logging."""
    tiny.push("mail", b"x", name="welcome")
    async with program(FAILS, tiny.address) as process:
        said = (await process.stderr.read()).decode()
    assert f"INFO connected to {tiny.address} as w1; queue mail" in said
    assert "WARNING attempt 1 of job" in said
    assert "in welcome" in said  # the traceback


def test_a_program_with_a_log_of_its_own_keeps_it():
    """Trial B8: the plain log stands back where the program has set up logging, and goes again."""
    library, root = logging.getLogger("jobline"), logging.getLogger()
    before = (library.handlers[:], library.level, root.handlers[:])
    with log.plain_log():
        assert (library.handlers, library.level, root.handlers) == before  # pytest listens at root
    root.handlers[:] = []
    try:
        with log.plain_log():
            assert len(library.handlers) == 1
            assert library.isEnabledFor(logging.INFO)
    finally:
        root.handlers[:] = before[2]
    assert (library.handlers, library.level) == before[:2]


async def test_jobs_that_no_worker_handles_are_a_warning(tiny, caplog):
    """Trial B8: the server tells the workers of the queue."""
    worker = Worker(tiny.address)
    worker.handler("mail", "letter")(lambda _payload: None)
    async with working(worker):
        await tiny.until(lambda: tiny.ports)
        waiting = pb.UnhandledName(queue="mail", name="parcel", ready=3)
        tiny.ports[0].say(pb.StreamResponse(unhandled=[waiting]))
        told = "3 jobs named 'parcel' wait in queue mail, and no worker handles them"
        await said(caplog, "jobline.worker", told)
        tiny.ports[0].say(
            pb.StreamResponse(unhandled=[pb.UnhandledName(queue="numbers", name="", ready=1)])
        )
        one = "1 job without a name waits in queue numbers, and no worker handles it"
        await said(caplog, "jobline.worker", one)
    assert levels(caplog, told) == levels(caplog, one) == ["WARNING"]


async def test_an_idle_worker_stops_in_two_lines(tiny, caplog):
    """Trial B8: stages in which no handler runs are over at once, and no news."""
    worker = Worker(tiny.address)
    worker.handler("mail")(lambda _payload: None)
    async with working(worker):
        await tiny.until(lambda: tiny.ports)
    assert [text for text in logged(caplog) if text.startswith("stop")] == ["stopping", "stopped"]


async def test_a_stop_logs_what_running_handlers_are_given(tiny, caplog):
    """Trial B8: for how long they may finish, and that they were told to end."""
    worker = Worker(tiny.address, soft_stop=60, hard_stop=60)
    started = holding(worker, "mail")
    tiny.push("mail", b"x")
    async with working(worker) as serving:
        await started.wait()
        worker.stop()
        worker.stop()
        await serving
    assert [text for text in logged(caplog) if text.startswith("stop")] == [
        "stopping: 1 handler may finish, for up to 60 s",
        "stopping: 1 handler is told to end now",
        "stopped",
    ]
