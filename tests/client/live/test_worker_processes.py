"""Handlers in processes: their outcomes and reports, and what becomes of those that crash."""

from __future__ import annotations

import json
import os
import threading

import pytest

from jobline import Worker
from jobline._worker.processes import child_process
from jobline.errors import InvalidArgument
from jobline.v1 import job_service_pb2 as pb
from tests.client.live import process_handlers as handlers
from tests.client.live import slow_handlers
from tests.client.live.tiny_store import CANCELLED, COMPLETED, READY
from tests.client.live.working import program, working

CRASHED = pb.RELEASE_REASON_CRASHED
INTERRUPTED = pb.RELEASE_REASON_INTERRUPTED


def worker_of(tiny, processes: int = 1, **settings):
    return Worker(tiny.address, processes=processes, **settings)


async def test_handlers_run_in_other_processes_and_their_values_come_back(tiny):
    """Of plain handlers, of batches, of declared jobs, and through middleware."""
    worker = worker_of(tiny, 2, middleware=[handlers.Marked()])
    worker.handler("pids")(handlers.pid)
    worker.add(handlers.declared)
    (id_,) = tiny.push("pids", b'"x"', content_type="application/json")
    (other,) = tiny.push(
        "declared", b'{"number": 4}', name="declared", content_type="application/json"
    )
    async with working(worker):
        await tiny.until(lambda: len(tiny.jobs(COMPLETED)) == 2)
    told = json.loads(tiny.store.jobs[id_].result)
    assert told["inner"] == told["around"] != os.getpid()
    assert json.loads(tiny.store.jobs[other].result)["inner"] == 8


@pytest.mark.parametrize("settings", [{}, {"window": 50}, {"concurrency": 3}])
async def test_no_job_is_asked_for_before_a_child_is_ready(tiny, tmp_path, monkeypatch, settings):
    """It would use up the time of its attempt while the child imports its modules. An idle worker
    waits for its children, too.
    """
    gate = tmp_path / "gate"
    monkeypatch.setenv(slow_handlers.GATE, str(gate))
    worker = worker_of(tiny, 2, **settings)
    worker.handler("q")(slow_handlers.same)
    if "concurrency" in settings:
        worker.handler("async")(handlers.async_same)
    (id_,) = tiny.push("q", b'"x"', content_type="application/json")
    heard = tiny.frames_heard
    async with working(worker):
        await tiny.until(lambda: tiny.frames_heard > heard)
        assert (worker.stats.window, worker.stats.connected) == (0, True)
        assert tiny.store.jobs[id_].state == READY
        gate.touch()
        await tiny.until(lambda: tiny.store.jobs[id_].state == COMPLETED)
        both = settings.get("window", 2 + settings.get("concurrency", 0))
        await tiny.until(lambda: tiny.ports[0].window >= both)
    assert tiny.store.jobs[id_].delivery == 1


async def test_a_place_without_a_child_asks_for_no_job(tiny, tmp_path, monkeypatch):
    """Its child has crashed, and the next one still imports."""
    gate = tmp_path / "gate"
    gate.touch()
    monkeypatch.setenv(slow_handlers.GATE, str(gate))
    worker = worker_of(tiny, 1)
    worker.handler("q")(slow_handlers.same)
    worker.handler("crash")(handlers.crash)
    (bad,) = tiny.push("crash", b'"exit"', content_type="application/json")
    async with working(worker):
        await tiny.until(lambda: tiny.store.jobs[bad].delivery)
        gate.unlink()
        await tiny.until(lambda: CRASHED in tiny.store.jobs[bad].releases)
        await tiny.until(lambda: tiny.ports[0].window == 0)
        (good,) = tiny.push("q", b'"y"', content_type="application/json")
        assert tiny.store.jobs[good].state == READY
        gate.touch()
        await tiny.until(lambda: tiny.store.jobs[good].state == COMPLETED)
    assert tiny.store.jobs[good].delivery == 1


async def test_payloads_are_read_as_in_a_thread(tiny):
    """Without an annotation, bytes stay bytes."""
    worker = worker_of(tiny)
    worker.handler("q")(handlers.same)
    raw, text = tiny.push("q", b"\xff", b"")
    (json_id,) = tiny.push("q", b"[1]", content_type="application/json")
    async with working(worker):
        await tiny.until(lambda: len(tiny.jobs(COMPLETED)) == 3)
    assert tiny.store.jobs[raw].result == b"\xff"
    assert tiny.store.jobs[text].result == b""
    assert tiny.store.jobs[json_id].result == b"[1]"


@pytest.mark.parametrize("how", ["exit", "segfault", "kill", "forked"])
async def test_a_child_that_crashes_costs_its_job_a_stall_and_no_other(tiny, caplog, how):
    worker = worker_of(tiny)
    worker.handler("q")(handlers.crash)
    bad, good = tiny.push("q", json.dumps(how).encode(), b'"fine"', content_type="application/json")
    async with working(worker):
        await tiny.until(lambda: tiny.store.jobs[good].state == COMPLETED)
        await tiny.until(lambda: tiny.store.jobs[bad].releases[:2] == [CRASHED, CRASHED])
    assert "has crashed" in caplog.text


async def test_sys_exit_is_a_failure_and_no_crash(tiny):
    worker = worker_of(tiny)
    worker.handler("q")(handlers.crash)
    (id_,) = tiny.push("q", b'"leave"', content_type="application/json")
    async with working(worker):
        await tiny.until(lambda: tiny.store.jobs[id_].error)
    assert CRASHED not in tiny.store.jobs[id_].releases


async def test_all_jobs_of_a_batch_that_crashes_stall(tiny):
    worker = worker_of(tiny, window=10)
    worker.batch_handler("good", size=2, wait=20)(handlers.batch)
    worker.batch_handler("bad", size=2, wait=20)(handlers.batch)
    first, seven = tiny.push("good", b"1", b"7", max_attempts=1, content_type="application/json")
    lost = tiny.push("bad", b"-1", b"2", content_type="application/json")
    async with working(worker):
        await tiny.until(lambda: all(tiny.store.jobs[id_].releases for id_ in lost))
        await tiny.until(lambda: tiny.store.jobs[first].state == COMPLETED)
        await tiny.until(lambda: tiny.store.jobs[seven].error)
    assert tiny.store.jobs[first].result == b"2"
    assert all(tiny.store.jobs[id_].releases[0] == CRASHED for id_ in lost)


async def test_a_cancelled_handler_that_stops_is_cancelled(tiny):
    worker = worker_of(tiny)
    worker.handler("q")(handlers.wait_cancelled)
    (id_,) = tiny.push("q", b'"x"', content_type="application/json")
    entry = tiny.store.jobs[id_]
    async with working(worker):
        await tiny.until(lambda: entry.progress)
        entry.cancel_requested = True
        tiny.ports[0].revoke(entry, pb.REVOKE_REASON_CANCELLED)
        await tiny.until(lambda: entry.state == CANCELLED)


@pytest.mark.parametrize("kind", ["stubborn", "deaf"])
async def test_a_handler_that_does_not_stop_is_ended_and_its_process_replaced(
    tiny, tmp_path, monkeypatch, caplog, kind
):
    """By an exception, so that it can clean up; one that does not end then, by SIGKILL."""
    monkeypatch.setattr(child_process, "KILL_SECONDS", 20 if kind == "stubborn" else 0.1)
    worker = worker_of(tiny, cancel_grace=0.01)
    worker.handler("q")(getattr(handlers, kind))
    worker.handler("pids")(handlers.pid)
    mark = tmp_path / "mark"
    (id_,) = tiny.push("q", json.dumps(str(mark)).encode(), content_type="application/json")
    entry = tiny.store.jobs[id_]
    async with working(worker):
        await tiny.until(lambda: entry.progress)
        entry.cancel_requested = True
        tiny.ports[0].revoke(entry, pb.REVOKE_REASON_CANCELLED)
        await tiny.until(lambda: entry.state == CANCELLED)
        (other,) = tiny.push("pids", b'"x"', content_type="application/json")
        await tiny.until(lambda: tiny.store.jobs[other].state == COMPLETED)
    assert entry.releases == []
    assert mark.exists() is (kind == "stubborn")
    assert "ignores its end" in caplog.text


async def test_a_stop_that_cannot_wait_kills_the_child_and_gives_the_job_back(tiny):
    """As any other handler that does not stop: no attempt, no stall."""
    worker = worker_of(tiny, soft_stop=0, hard_stop=0)
    worker.handler("q")(handlers.deaf)
    (id_,) = tiny.push("q", b'"x"', content_type="application/json")
    async with working(worker) as serving:
        await tiny.until(lambda: tiny.store.jobs[id_].progress)
        worker.stop()
        await serving
    assert (tiny.store.jobs[id_].state, tiny.store.jobs[id_].releases) == (READY, [INTERRUPTED])


async def test_what_cannot_go_to_another_process_is_refused_where_it_is_declared(tiny):
    worker = worker_of(tiny)
    lock = threading.Lock()
    with pytest.raises(InvalidArgument, match=r"<lambda>.* cannot go to another process"):
        worker.handler("q")(lambda _payload: lock)

    def local(payload):
        return payload

    with pytest.raises(InvalidArgument, match="local"):
        worker.batch_handler("q")(local)

    class Local:
        pass

    with pytest.raises(InvalidArgument, match="cannot go to another process"):
        worker.handler("q", payload=Local)(handlers.pid)

    @worker.handler("async")
    async def stays(payload):  # on the loop, in this process
        return payload


PROGRAM = """
import sys
from jobline import Worker
from tests.client.live.process_handlers import pid
worker = Worker(sys.argv[1], processes=1)
worker.handler("q")(pid)
worker.run()
"""


async def test_a_program_that_makes_itself_again_is_told_how_not_to(tiny, tmp_path):
    """A child imports the program; without its guard it would run a worker, and so on."""
    file = tmp_path / "unguarded.py"
    file.write_text(PROGRAM, encoding="utf-8")
    text = "import runpy, sys; runpy.run_path(sys.argv.pop(1), {}, '__main__')"
    async with program(text, str(file), tiny.address) as process:
        _, stderr = await process.communicate()
    assert process.returncode == 1
    assert b'if __name__ == "__main__"' in stderr
