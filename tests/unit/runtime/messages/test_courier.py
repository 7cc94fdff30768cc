"""Messages on their way: after which commit they go, and what crashes and failures leave."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide import messages as decide_messages
from jobline_server.runtime import loops
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.health import Health
from jobline_server.runtime.messages import courier
from jobline_server.runtime.watch.events import event_runs
from tests.unit.runtime.messages.sending import HERE, THERE, Sending, a_moment, sending, until

# Of the sender, of the receiver, and of the sender again.
COMMITS = 3


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Sending]:
    async with sending(tmp_path) as one:
        yield one


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses take no time, and are noted."""
    noted: list[float] = []

    def pause_after(failures: int) -> float:
        noted.append(loops.pause_after(failures))
        return 0.001

    monkeypatch.setattr(courier, "pause_after", pause_after)
    return noted


async def test_a_message_goes_after_its_commit_and_is_forgotten_after_that_of_its_jobs(
    pair: Sending,
) -> None:
    pair.send(b"1", b"2")
    await a_moment()
    assert (pair.link.calls, pair.waits()) == ([], 2)
    await pair.commit()
    assert (pair.arrived(), pair.waits()) == ([b"1", b"2"], 2)
    await pair.commit()
    assert pair.waits() == 0
    await pair.commit()
    assert len(pair.link.calls) == 1


@pytest.mark.parametrize("commits", range(COMMITS + 2))
async def test_a_message_is_applied_once_wherever_the_process_is_killed(
    tmp_path: Path, commits: int
) -> None:
    """Before the first commit it was never sent; from then on it arrives."""
    async with sending(tmp_path) as before:
        before.send(b"1", b"2")
        await before.commit(commits)
    async with sending(tmp_path) as after:
        after.courier.start()
        await after.commit(COMMITS)
        assert after.arrived() == ([b"1", b"2"] if commits else [])
        assert after.waits() == 0
    async with sending(tmp_path) as last:
        last.courier.start()
        await last.commit()
        assert last.link.calls == []


async def test_a_checkpoint_keeps_what_waits(tmp_path: Path) -> None:
    async with sending(tmp_path) as before:
        before.link.open.clear()
        before.send(b"1")
        await before.commit()
        await before.runtime.checkpoints.take_due(everything=True)
        assert all(not slot.position.journal_rows for slot in before.runtime.core.slots)
    async with sending(tmp_path) as after:
        after.courier.start()
        await after.commit(COMMITS)
        assert (after.arrived(), after.waits()) == ([b"1"], 0)


async def test_a_pair_has_one_batch_on_its_way_and_pairs_do_not_wait_for_each_other(
    pair: Sending, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decide_messages, "DELIVERY_MESSAGES_MAX", 2)
    pair.link.open.clear()
    pair.send(b"1", b"2", b"3")
    pair.send(b"4", from_shard=THERE)
    await pair.commit()
    pair.send(b"5")
    await pair.commit()
    assert [(batch.from_shard, len(batch.messages)) for batch in pair.link.calls] == [
        (HERE, 2),
        (THERE, 1),
    ]
    pair.link.open.set()
    await pair.commit(COMMITS + 1)
    assert pair.arrived() == [b"1", b"2", b"3", b"5"]
    assert pair.arrived(HERE) == [b"4"]
    assert (pair.waits(HERE), pair.waits(THERE)) == (0, 0)


@pytest.mark.parametrize("error", [ValueError("no way"), Refused(RefusalKind.DRAINING, "not now")])
async def test_a_delivery_that_fails_is_tried_again_after_pauses_that_grow(
    pair: Sending, pauses: list[float], error: Exception
) -> None:
    pair.link.fails = error
    pair.send(b"1")
    await pair.commit()
    await until(lambda: len(pauses) >= 8)
    assert pauses[:8] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    is_failing = "messages" in pair.runtime.core.loops.failing()
    assert is_failing == isinstance(error, ValueError)
    pair.link.fails = None
    await until(pair.arrived)
    await pair.commit(COMMITS)
    assert (pair.arrived(), pair.waits()) == ([b"1"], 0)
    assert pair.runtime.core.loops.failing() == []


async def test_a_link_that_gets_nowhere_is_no_busy_loop(
    pair: Sending, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def deliver(_batch: object) -> int:
        return 0

    monkeypatch.setattr(pair.link, "deliver", deliver)
    pair.send(b"1")
    await pair.commit()
    await until(lambda: len(pauses) >= 2)
    assert pair.waits() == 1


@pytest.mark.parametrize("why", ["disk", "ids", "elsewhere"])
async def test_messages_wait_for_a_receiver_that_cannot_take_them(
    pair: Sending, pauses: list[float], monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """The rest of a full disk belongs to acks, and no id is given that is not set aside."""
    slots = pair.runtime.core.slots
    receiver = slots[THERE]
    pair.send(b"1")
    if why == "disk":
        pair.runtime.core.commits.disk_full = True
    elif why == "ids":
        receiver.position.id_ceiling, ceiling = 0, receiver.position.id_ceiling
    else:
        del slots._by_number[THERE]
    await pair.commit()
    await until(lambda: len(pauses) >= 2)
    assert (pair.arrived() if why != "elsewhere" else [], pair.waits()) == ([], 1)
    if why == "disk":
        pair.runtime.core.commits.disk_full = False
    elif why == "ids":
        receiver.position.id_ceiling = ceiling
    else:
        slots._by_number[THERE] = receiver
    await until(pair.arrived)
    await pair.commit(COMMITS)
    assert pair.waits() == 0


async def test_after_a_stop_nothing_is_delivered(pair: Sending) -> None:
    pair.link.open.clear()
    pair.send(b"1")
    await pair.commit()
    await pair.courier.stop()
    pair.link.open.set()
    pair.send(b"2")
    await pair.commit(COMMITS)
    assert (len(pair.link.calls), pair.waits()) == (1, 2)


async def test_watchers_see_the_push_and_nothing_of_the_message(
    pair: Sending,
) -> None:
    batches: list[CommittedBatch] = []
    pair.runtime.core.listen("test", batches.extend)
    pair.send(b"1")
    await pair.commit(COMMITS)
    runs = [run for one in batches for run in event_runs(one.slot.number, one.offset, one.applied)]
    assert [run.shared.kind for run in runs] == [
        EventKind.EVENT_KIND_QUEUE_CREATED,
        EventKind.EVENT_KIND_PUSHED,
    ]


async def test_a_sender_that_is_lost_delivers_no_more(pair: Sending, pauses: list[float]) -> None:
    """Its next owner does, with the same numbers: what was applied is not applied again."""
    pair.link.open.clear()
    pair.send(b"1")
    await pair.commit()
    slots = pair.runtime.core.slots
    slots.close(slots[HERE], Health.FENCED, "another process has it")
    pair.link.open.set()
    await pair.commit()
    await until(lambda: not pair.courier._deliveries)
    assert len(pair.link.calls) == 1


async def test_messages_to_a_shard_that_is_lost_wait_in_the_outbox(
    pair: Sending, pauses: list[float]
) -> None:
    """They are delivered when it is served again, here or elsewhere."""
    slots = pair.runtime.core.slots
    slots.close(slots[THERE], Health.FENCED, "another process has it")
    pair.send(b"1")
    await pair.commit()
    await until(lambda: len(pair.link.calls) > 2)
    assert pair.waits() == 1
