"""A worker whose server does not keep to the window."""

from __future__ import annotations

from jobline import Worker
from tests.client.live.tiny_store import COMPLETED
from tests.client.live.working import working
from tests.client.pure.session_frames import run


async def test_a_server_that_sends_far_more_than_was_asked_for_is_left(tiny, caplog):
    """Its jobs would fill the memory; what the next stream brings is run."""
    worker = Worker(tiny.address, concurrency=4)
    ran: list[bytes] = []
    worker.handler("q", payload=bytes)(ran.append)
    async with working(worker):
        tiny.ports[0].say(run(900, 1, 300))
        await tiny.until(lambda: tiny.calls["Stream"] == 2)
        tiny.push("q", b"asked for")
        await tiny.until(lambda: tiny.jobs(COMPLETED))
    assert ran == [b"asked for"]
    assert "more jobs than were asked for: 300 at hand, of 4" in caplog.text
