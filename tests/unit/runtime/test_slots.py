"""Slots: shards are found by number, by queue and by id, and not all of them need be here."""

from __future__ import annotations

import asyncio
from zlib import crc32

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.limits import SEQUENCE_BITS
from jobline_server.engine.load import Load
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard import Shard
from jobline_server.runtime.health import Health
from jobline_server.runtime.slots import JournalPosition, ShardSlot, ShardSlots
from jobline_server.storage.segments import KeySegments

TOTAL = 4
HERE = (1, 2)
NOWHERE = TOTAL << SEQUENCE_BITS


def a_slot(number: int) -> ShardSlot:
    shard = Shard(number, epoch=1, load=Load())
    shard.committed = number * 10
    return ShardSlot(shard, JournalPosition(0, limits.ID_BLOCK, 0, 0, 0, KeySegments(0)))


@pytest.fixture
def slots() -> ShardSlots:
    """Two shards of four."""
    return ShardSlots(map(a_slot, HERE), TOTAL)


def id_in(shard: int, sequence: int = 7) -> int:
    return shard << SEQUENCE_BITS | sequence


def queue_in(shard: int) -> str:
    names = (f"queue-{n}" for n in range(1_000))
    return next(name for name in names if crc32(name.encode()) % TOTAL == shard)


def test_a_slot_is_found_by_number_by_queue_and_by_id(slots: ShardSlots) -> None:
    """All three lead to the same object."""
    assert [slot.number for slot in slots] == [*HERE]
    for number in HERE:
        slot = slots[number]
        assert slots.of_queue(queue_in(number)) is slots.find_by_queue(queue_in(number)) is slot
        assert slots.of_id(id_in(number)) is slots.find_by_id(id_in(number)) is slot


@pytest.mark.parametrize("number", sorted({*range(TOTAL)} - {*HERE}))
def test_what_belongs_to_a_shard_that_is_not_here_is_refused_with_its_number(
    slots: ShardSlots, number: int
) -> None:
    """Such a call works later or elsewhere, so its status is one that clients retry."""
    for ask in (
        lambda: slots[number],
        lambda: slots.of_queue(queue_in(number)),
        lambda: slots.of_id(id_in(number)),
        lambda: slots.check_here([id_in(1), id_in(number)]),
    ):
        with pytest.raises(Refused, match=f"shard {number} is not served here") as refused:
            ask()
        assert refused.value.kind is RefusalKind.SHARD_UNAVAILABLE
        assert refused.value.retry_after_ms
    assert slots.find_by_queue(queue_in(number)) is None
    assert slots.find_by_id(id_in(number)) is None


def test_an_id_that_no_shard_has_given_out_is_not_found_rather_than_elsewhere(
    slots: ShardSlots,
) -> None:
    """No other server has it either."""
    assert slots.of_id(NOWHERE) is None
    slots.check_here([NOWHERE])


def test_owners_of_ids_are_those_here_those_elsewhere_and_none(slots: ShardSlots) -> None:
    """Each id is named by its index."""
    owners = slots.owners_of([id_in(2), id_in(0), id_in(1), NOWHERE, id_in(2, 8)])
    assert owners.here == {slots[2]: [0, 4], slots[1]: [2]}
    assert (owners.elsewhere, owners.nowhere) == ([1], [3])


@pytest.mark.parametrize(
    ("ids", "owner"),
    [
        ([id_in(1)], 1),
        ([id_in(2, 9), id_in(2, 1)], 2),
        ([id_in(1), id_in(2)], None),
        ([id_in(0), id_in(0, 8)], None),
        ([id_in(2), NOWHERE], None),
    ],
)
def test_ids_have_a_single_owner_if_one_shard_here_has_them_all(
    slots: ShardSlots, ids: list[int], owner: int | None
) -> None:
    """Such a call needs one decision, and one look at the ids."""
    found = slots.single_owner(ids)
    assert (found and found.number) == owner


def test_a_queue_is_found_if_it_exists_here(slots: ShardSlots) -> None:
    """Tasks that look at queues pass over those of other servers."""
    name = queue_in(1)
    assert slots.find_queue(name) is None
    queue = slots[1].shard.queues[name] = Queue(name, 1, 0)
    assert slots.find_queue(name) is queue
    assert slots.find_queue(queue_in(0)) is None


def test_offsets_are_of_all_shards_and_journals_of_those_here(slots: ShardSlots) -> None:
    """Positions of watchers have an offset for each shard of the store."""
    assert slots.offsets() == [0, 10, 20, 0]
    for slot in slots:
        slot.position.journal_bytes = 100
    assert slots.journal_bytes() == 200
    assert (len(slots), slots.total) == (2, TOTAL)


async def test_a_slot_that_is_closed_refuses_its_callers_and_is_found_no_more(
    slots: ShardSlots,
) -> None:
    """Those who wait for the commit under way, those who wait for the next one; others wait on."""
    loop = asyncio.get_running_loop()
    closed: list[ShardSlot] = []
    slots.on_closed = closed.append
    lost, other = slots[1], slots[2]
    waits = [loop.create_future() for _ in range(4)]
    waits[1].cancel()
    lost.committing, lost.waiting = [(waits[0], 1), (waits[1], 1)], [(waits[2], 1)]
    other.waiting = [(waits[3], 1)]
    for _ in range(2):
        slots.close(lost, Health.FENCED, "another process has it")
    for wait in (waits[0], waits[2]):
        with pytest.raises(Refused, match="shard 1 is not served here any more"):
            await wait
    assert not waits[3].done()
    assert (closed, [*slots], 1 in slots, lost.is_closed) == ([lost], [other], False, True)
    assert str(slots.closed[1]) == (
        "shard 1 is not served any more (fenced): another process has it"
    )
    assert slots.offsets() == [0, 10, 20, 0]


def test_ids_and_queues_are_refused_if_none_of_them_is_here(slots: ShardSlots) -> None:
    """A call that can be served in part is."""
    slots.check_any_id([id_in(0), id_in(1)])
    slots.check_any_id([NOWHERE])
    slots.check_any_queue([(queue_in(0), 1), (queue_in(1), 1)])
    with pytest.raises(Refused, match="shard 0"):
        slots.check_any_id([NOWHERE, id_in(0), id_in(3)])
    with pytest.raises(Refused, match="shard 3"):
        slots.check_any_queue([(queue_in(3), 1), (queue_in(0), 1)])
