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


async def test_a_server_that_confirms_nothing_is_left_and_told_again(tiny, caplog):
    """Settles are kept until they are confirmed, and would fill the memory; none is lost."""
    worker = Worker(tiny.address, concurrency=1, window=1)
    ran: list[bytes] = []

    @worker.handler("q", payload=bytes)
    async def handle(payload):
        ran.append(payload)
        tiny.store.changed()

    async with working(worker):
        first = tiny.ports[0]
        first.keeps_confirms = True
        for id_ in range(1_001, 2_000):
            frame = run(id_, 1, 1)
            frame.runs[0].queue = "q"
            first.say(frame)
            await tiny.until(lambda at=id_: len(ran) == at - 1_000 or tiny.calls["Stream"] > 1)
            if tiny.calls["Stream"] > 1:
                break
        assert len(ran) < 200
        tiny.push("q", b"confirmed")
        await tiny.until(lambda: tiny.jobs(COMPLETED))
        again = [settle for frame in tiny.ports[0].frames for settle in frame.settles]
    windows = [frame.window for frame in first.frames if frame.HasField("window")]
    assert [window.max_in_flight for window in windows] == [1, 0]
    assert len({id_ for settle in again for id_ in settle.ack_ids}) == len(ran)
    assert "sends jobs and has not confirmed" in caplog.text
