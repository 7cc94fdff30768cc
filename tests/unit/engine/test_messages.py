"""Messages between two shards: sent with what causes them, applied once, forgotten when applied."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide import messages, receive
from jobline_server.engine.decide.messages import (
    decide_acknowledge,
    decide_send,
    next_batch,
)
from jobline_server.engine.decide.receive import MessageGap, decide_receive
from jobline_server.engine.entries import LotPushed
from jobline_server.engine.load import Load
from jobline_server.engine.message_entries import MessagesReceived, MessagesSent
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.shard import Shard
from jobline_server.engine.shard_messages import MessageBatch, PushJobs
from jobline_server.engine.values import DEFAULT_OPTIONS, JobOptions, QueueSettings
from tests.shard_image import image_of
from tests.unit.engine.world import EPOCH, World

HERE, THERE = 1, 2
FIRST = EPOCH << limits.MESSAGE_NUMBER_BITS | 1


class Pair(NamedTuple):
    """Two shards with a disk each."""

    sender: World
    receiver: World

    def send(self, *messages: PushJobs) -> None:
        """Sends, and commits."""
        decide_send(self.sender.shard, self.sender.now, THERE, messages)
        self.sender.commit()

    def batch(self) -> MessageBatch:
        """What is to be delivered now."""
        batch = next_batch(self.sender.shard, THERE)
        assert batch is not None
        return batch

    def receive(self, batch: MessageBatch) -> int:
        """Has a batch applied, and commits."""
        up_to = decide_receive(self.receiver.shard, self.receiver.now, batch)
        self.receiver.commit()
        return up_to

    def acknowledge(self, up_to: int) -> None:
        """Tells the sender, and commits."""
        decide_acknowledge(self.sender.shard, self.sender.now, THERE, up_to)
        self.sender.commit()

    def arrived(self) -> list[bytes]:
        """The payloads that the receiver has in queue q, in order."""
        lots = self.receiver.shard.lots.lots.values()
        return [payload for lot in lots if lot.queue.name == "q" for payload in lot.payloads]


@pytest.fixture
def pair() -> Pair:
    receiver = World()
    receiver.shard = Shard(THERE, epoch=EPOCH, load=Load())
    return Pair(World(), receiver)


def jobs(*payloads: bytes, queue: str = "q") -> PushJobs:
    return PushJobs(queue, DEFAULT_OPTIONS, Payloads.of(payloads))


def test_a_message_is_delivered_after_its_commit_and_not_before(pair):
    decide_send(pair.sender.shard, pair.sender.now, THERE, [jobs(b"1")])
    assert next_batch(pair.sender.shard, THERE) is None
    pair.sender.commit()
    assert pair.batch() == MessageBatch(HERE, THERE, FIRST, FIRST, (jobs(b"1"),))


def test_nothing_to_send_is_no_fact(pair):
    decide_send(pair.sender.shard, pair.sender.now, THERE, [])
    assert pair.sender.commit() == []


def test_jobs_of_a_message_are_pushed_with_their_options(pair):
    own = JobOptions(name="mail", priority=3)
    pair.send(PushJobs("q", own, Payloads.of([b"1", b"2"])))
    pair.receive(pair.batch())
    [lot] = pair.receiver.shard.lots.lots.values()
    assert (lot.options, list(lot.payloads)) == (own, [b"1", b"2"])
    assert pair.receiver.ids() == [lot.first_id, lot.first_id + 1]


def test_what_a_message_causes_is_in_the_commit_that_says_it_was_applied(pair):
    pair.send(jobs(b"1"))
    decide_receive(pair.receiver.shard, pair.receiver.now, pair.batch())
    *_, pushed, received = pair.receiver.commit()
    assert isinstance(pushed, LotPushed)
    assert received == MessagesReceived(pair.receiver.now.wall_ms, HERE, FIRST)


def test_a_batch_that_comes_again_is_applied_once(pair):
    pair.send(jobs(b"1"), jobs(b"2"))
    batch = pair.batch()
    assert pair.receive(batch) == pair.receive(batch) == FIRST + 1
    assert pair.arrived() == [b"1", b"2"]
    assert pair.receiver.commit() == []


def test_of_a_batch_that_is_known_in_part_the_rest_is_applied(pair):
    pair.send(jobs(b"1"))
    pair.receive(pair.batch())
    pair.send(jobs(b"2"))
    assert pair.receive(pair.batch()) == FIRST + 1
    assert pair.arrived() == [b"1", b"2"]


def test_a_batch_without_the_one_before_it_is_refused(pair):
    pair.send(jobs(b"1"), jobs(b"2"))
    batch = MessageBatch(HERE, THERE, FIRST, FIRST + 1, (jobs(b"2"),))
    with pytest.raises(MessageGap, match=f"up to 0, and was sent {FIRST + 1}"):
        pair.receive(batch)
    assert pair.arrived() == []


def test_what_is_acknowledged_is_forgotten(pair):
    pair.send(jobs(b"1"), jobs(b"2"), jobs(b"3"))
    assert (pair.sender.shard.load.outgoing_jobs, pair.sender.shard.load.outgoing_bytes) == (3, 3)
    pair.acknowledge(FIRST + 1)
    assert pair.batch().messages == (jobs(b"3"),)
    pair.acknowledge(FIRST + 2)
    assert next_batch(pair.sender.shard, THERE) is None
    assert (pair.sender.shard.load.outgoing_jobs, pair.sender.shard.load.outgoing_bytes) == (0, 0)
    pair.sender.check()


def test_an_acknowledgement_that_comes_again_is_no_fact(pair):
    pair.send(jobs(b"1"))
    pair.acknowledge(FIRST)
    decide_acknowledge(pair.sender.shard, pair.sender.now, THERE, FIRST)
    assert pair.sender.commit() == []


def test_numbers_go_on_after_all_were_forgotten(pair):
    pair.send(jobs(b"1"))
    pair.acknowledge(pair.receive(pair.batch()))
    pair.send(jobs(b"2"))
    assert pair.batch().first_number == FIRST + 1
    pair.receive(pair.batch())
    assert pair.arrived() == [b"1", b"2"]


def test_numbers_of_a_later_epoch_are_higher_though_nothing_is_remembered(pair):
    """The sender forgot what was acknowledged, numbers too, and the receiver has not."""
    pair.send(jobs(b"1"))
    pair.receive(pair.batch())
    pair.sender.shard = Shard(HERE, epoch=EPOCH + 1, load=Load())
    pair.send(jobs(b"2"))
    pair.receive(pair.batch())
    assert pair.arrived() == [b"1", b"2"]


def test_both_recover(pair):
    pair.send(jobs(b"1"), jobs(b"2"))
    pair.acknowledge(FIRST)
    pair.receive(pair.batch())
    for world in pair:
        world.check()
        assert image_of(world.recovered()) == image_of(world.shard)


def test_a_shard_may_send_to_itself(world):
    decide_send(world.shard, world.now, HERE, [jobs(b"1")])
    world.commit()
    batch = next_batch(world.shard, HERE)
    assert batch is not None
    decide_acknowledge(world.shard, world.now, HERE, decide_receive(world.shard, world.now, batch))
    assert next(iter(world.shard.lots.lots.values())).payloads[0] == b"1"
    assert next_batch(world.shard, HERE) is None


def test_a_batch_has_limits(pair, monkeypatch):
    monkeypatch.setattr(messages, "DELIVERY_MESSAGES_MAX", 2)
    monkeypatch.setattr(messages, "DELIVERY_BYTES_MAX", 5)
    pair.send(jobs(b"1"), jobs(b"2"), jobs(b"3"), jobs(b"larger than it may be"), jobs(b"5"))
    counts = []
    while (batch := next_batch(pair.sender.shard, THERE)) is not None:
        counts.append(len(batch.messages))
        pair.acknowledge(pair.receive(batch))
    assert counts == [2, 1, 1, 1]


def test_a_batch_ends_before_a_message_that_was_lost(pair):
    """Its item was damaged: what stands before it and behind it is delivered all the same."""
    pair.send(jobs(b"1"), jobs(b"2"), jobs(b"3"))
    del pair.sender.shard.messages.outboxes[THERE][1]
    batch = pair.batch()
    assert batch.messages == (jobs(b"1"),)
    pair.acknowledge(pair.receive(batch))
    pair.acknowledge(pair.receive(pair.batch()))
    assert pair.arrived() == [b"1", b"3"]


def test_a_receiver_that_forgot_goes_on_with_what_the_sender_holds(pair):
    """Its inbox was damaged: nobody else could bring what came before."""
    pair.send(jobs(b"1"))
    pair.acknowledge(pair.receive(pair.batch()))
    pair.receiver.shard.messages.received.clear()
    pair.send(jobs(b"2"))
    assert pair.receive(pair.batch()) == FIRST + 1


def test_a_message_that_fails_is_not_applied_and_what_came_before_it_once(pair, monkeypatch):
    pair.send(jobs(b"1"), jobs(b"2"))
    push = receive.RECEIVE[PushJobs]

    def fail(shard, now, message):
        if message.payloads[0] == b"2":
            raise ValueError
        push(shard, now, message)

    with monkeypatch.context() as patch:
        patch.setitem(receive.RECEIVE, PushJobs, fail)
        with pytest.raises(ValueError):  # noqa: PT011  # it is the one above
            pair.receive(pair.batch())
    pair.receiver.commit()
    pair.receive(pair.batch())
    assert pair.arrived() == [b"1", b"2"]


def test_full_queues_take_the_jobs_of_messages_and_refuse_those_of_producers(pair, monkeypatch):
    """They were let in with what they follow from; the limit of queues counts for them no more."""
    pair.receiver.plain(b"1")
    pair.receiver.settings(max_waiting=1)
    monkeypatch.setattr(limits, "SHARD_QUEUES_MAX", 1)
    pair.receiver.shard.load.waiting_max = 1
    pair.send(jobs(b"2"), jobs(b"3", queue="another"))
    pair.receive(pair.batch())
    assert pair.arrived() == [b"1", b"2"]
    assert pair.receiver.counts("another") == (0, 1, 0)
    assert pair.receiver.queue().settings == QueueSettings(max_waiting=1)
    with pytest.raises(Refused) as refused:
        pair.receiver.plain(b"4")
    assert refused.value.kind is RefusalKind.QUEUE_FULL


@pytest.mark.parametrize(("limit", "left"), [("waiting_max", 2), ("waiting_bytes_max", 3)])
def test_what_waits_in_an_outbox_takes_room(pair, limit, left):
    """A receiver that is away makes the server full, and not larger without end."""
    setattr(pair.sender.shard.load, limit, left)
    pair.send(jobs(b"x"), jobs(b"y"))
    with pytest.raises(Refused) as refused:
        pair.sender.plain(b"zz")
    assert refused.value.kind is RefusalKind.SERVER_FULL
    pair.acknowledge(FIRST + 1)
    pair.sender.plain(b"zz")


def test_messages_are_facts_with_numbers(pair):
    decide_send(pair.sender.shard, pair.sender.now, THERE, [jobs(b"1"), jobs(b"2")])
    (fact,) = pair.sender.commit()
    assert fact == MessagesSent(pair.sender.now.wall_ms, THERE, FIRST, [jobs(b"1"), jobs(b"2")])


def test_a_batch_has_the_jobs_of_all_its_messages(pair):
    pair.send(jobs(b"1", b"2"), jobs(b"3"))
    assert pair.batch().jobs() == 3
