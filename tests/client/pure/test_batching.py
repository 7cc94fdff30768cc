"""Gathering: pushes that come while a call flies go together, in order, bounded, and never
twice.
"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from jobline import BufferFull
from jobline._backoff import RECONNECT, Pauses
from jobline._push.batching import Batch, BatchLimits, PushBatcher


def batcher(**limits):
    numbers = itertools.count(1)
    return PushBatcher(
        BatchLimits(**limits),
        request_ids=lambda: f"r{next(numbers)}",
        over=lambda _id, _known: None,
        chance=lambda: 1.0,
    )


def add(target, *waiters, key="lane", size=1, job_key="", now=0.0):
    return [target.add(now, key, b"x" * size, waiter, job_key) for waiter in waiters]


def waiters(batches):
    return [batch.waiters for batch in batches]


def test_the_first_push_goes_at_once_and_the_rest_gather():
    """A lonely push waits for nothing; those behind it share the next call."""
    pushes = batcher()
    assert add(pushes, 1) == [True]
    (first,) = pushes.batches_to_send(0.0)
    assert add(pushes, 2, 3, 4) == [False] * 3
    assert pushes.batches_to_send(0.0) == []
    pushes.handle_done(first)
    assert waiters(pushes.batches_to_send(0.0)) == [[2, 3, 4]]


def test_lanes_fly_side_by_side():
    """What shares nothing does not wait for each other."""
    pushes = batcher()
    add(pushes, 1, key="a")
    add(pushes, 2, key="b")
    assert waiters(pushes.batches_to_send(0.0)) == [[1], [2]]


def test_flights_are_limited():
    """A thousand lanes do not make a thousand calls at a time."""
    pushes = batcher(flights=2)
    for number in range(4):
        add(pushes, number, key=number)
    first = pushes.batches_to_send(0.0)
    assert waiters(first) == [[0], [1]]
    assert pushes.next_deadline() is None
    pushes.handle_done(first[0])
    assert waiters(pushes.batches_to_send(0.0)) == [[2]]


def test_a_full_buffer_refuses_the_newest():
    """What waits already is kept; the refused push changed nothing."""
    pushes = batcher(jobs=2)
    add(pushes, 1, 2)
    with pytest.raises(BufferFull, match="2 pushes of 2 bytes"):
        add(pushes, 3)
    assert (pushes.jobs, pushes.payload_bytes) == (2, 2)


def test_bytes_are_bounded_but_one_push_always_fits():
    """A payload larger than the buffer can still be pushed, alone."""
    pushes = batcher(payload_bytes=10)
    add(pushes, 1, size=50)
    with pytest.raises(BufferFull):
        add(pushes, 2)


def test_a_batch_is_cut_by_number_and_by_bytes():
    """One call carries what the server takes, and one push always."""
    pushes = batcher(batch_jobs=3, batch_bytes=10)
    add(pushes, 1, 2, 3, 4)
    (batch,) = pushes.batches_to_send(0.0)
    assert batch.waiters == [1, 2, 3]
    pushes.handle_done(batch)
    add(pushes, 5, size=8)
    add(pushes, 6, size=99)
    seen = []
    while batches := pushes.batches_to_send(0.0):
        seen += waiters(batches)
        pushes.handle_done(batches[0])
    assert seen == [[4, 5], [6]]
    assert (pushes.jobs, pushes.payload_bytes) == (0, 0)


def test_an_unknown_outcome_flies_again_under_the_same_request_id():
    """The server knows the second try for the first, so nothing is stored twice."""
    pushes = batcher()
    add(pushes, 1)
    (batch,) = pushes.batches_to_send(0.0)
    add(pushes, 2)
    assert pushes.handle_unknown(0.0, batch)
    assert pushes.batches_to_send(0.0) == []
    deadline = pushes.next_deadline()
    (again,) = pushes.batches_to_send(deadline)
    assert again is batch
    assert again.request_id == "r1"


def test_it_gives_up_when_its_time_is_over():
    """A caller is told within the client's timeout, counted from its push."""
    pushes = batcher(give_up_after=10.0)
    add(pushes, 1, now=5.0)
    (batch,) = pushes.batches_to_send(5.0)
    assert pushes.handle_unknown(14.0, batch)
    (batch,) = pushes.batches_to_send(14.9)
    assert not pushes.handle_unknown(14.99, batch)
    assert pushes.jobs == 0


def test_a_refused_batch_is_split_until_the_culprit_stands_alone():
    """One push that cannot be stored does not cost the others theirs, and order is kept."""
    pushes = batcher()
    add(pushes, *range(8))
    stored, refused = [], []
    while batches := pushes.batches_to_send(0.0):
        (batch,) = batches
        if 5 in batch.waiters:
            if not pushes.handle_refused(batch):
                refused += batch.waiters
        else:
            stored += batch.waiters
            pushes.handle_done(batch)
    assert (stored, refused) == ([0, 1, 2, 3, 4, 6, 7], [5])
    assert pushes.jobs == 0


def test_pushes_with_keys_carry_keys_and_no_request_id():
    """The key makes a retry safe, and the protocol allows only one of both."""
    pushes = batcher()
    add(pushes, 1, job_key="k1")
    add(pushes, 2, job_key="k2")
    (batch,) = pushes.batches_to_send(0.0)
    assert (batch.job_keys, batch.request_id) == (["k1", "k2"], "")


def test_a_push_can_be_withdrawn_until_it_leaves():
    """A caller that gives up early costs nothing; one that is too late is told so."""
    pushes = batcher()
    add(pushes, 1)
    (batch,) = pushes.batches_to_send(0.0)
    add(pushes, 2, 3, job_key="k")
    assert not pushes.withdraw("lane", 1)
    assert pushes.withdraw("lane", 2)
    assert not pushes.withdraw("other", 3)
    pushes.handle_done(batch)
    assert waiters(pushes.batches_to_send(0.0)) == [[3]]


def test_pauses_grow_to_their_longest_and_are_drawn_from_the_upper_half():
    """Neither does one client hammer a server, nor do all return at the same moment."""
    pauses = Pauses(first=1.0, longest=5.0)
    assert [pauses.after(tries, lambda: 1.0) for tries in (1, 2, 3, 4, 99)] == [1, 2, 4, 5, 5]
    assert pauses.after(1, lambda: 0.0) == 0.5
    assert RECONNECT.after(10**6, lambda: 1.0) == RECONNECT.longest


class GatherMachine(RuleBasedStateMachine):
    """Random callers against a server that answers, loses answers, and refuses what it dislikes.

    The server remembers request ids as the real one does, so a batch that is stored twice shows.
    """

    LIMITS = BatchLimits(jobs=12, payload_bytes=40, batch_jobs=4, batch_bytes=9, flights=2)

    @initialize()
    def begin(self):
        numbers = itertools.count(1)
        self.batcher: PushBatcher[str, tuple[int, bool]] = PushBatcher(
            self.LIMITS,
            request_ids=lambda: f"r{next(numbers)}",
            over=lambda _id, _known: None,
            chance=lambda: 0.5,
        )
        self.now = 0.0
        self.numbers = itertools.count()
        self.waiting: dict[tuple[int, bool], tuple[str, int]] = {}
        self.numbered: list[Batch[str, tuple[int, bool]]] = []
        self.stored: dict[str, list[int]] = {"a": [], "b": []}
        self.known: dict[str, list[tuple[int, bool]]] = {}
        self.told: set[tuple[int, bool]] = set()

    @rule(key=st.sampled_from("ab"), size=st.integers(0, 12), is_bad=st.booleans())
    def push(self, key, size, is_bad):
        number = next(self.numbers)
        try:
            self.batcher.add(self.now, key, b"x" * size, (number, is_bad))
        except BufferFull:
            assert self.batcher.jobs == 12 or self.batcher.payload_bytes + size > 40
        else:
            self.waiting[number, is_bad] = (key, size)

    @rule(pause=st.floats(0, 3))
    def send(self, pause):
        self.now += pause
        for batch in self.batcher.batches_to_send(self.now):
            assert len(batch.waiters) <= 4
            assert batch.payload_bytes <= 9 or len(batch.waiters) == 1
            assert batch.payload_bytes == sum(map(len, batch.payloads))
            assert batch.key not in [other.key for other in self.numbered]
            self.numbered.append(batch)

    def land(self, data):
        return self.numbered.pop(data.draw(st.integers(0, len(self.numbered) - 1)))

    def execute(self, batch):
        """What the server does: nothing if one is bad, nothing if it knows the request."""
        if any(is_bad for _, is_bad in batch.waiters):
            return False
        if batch.request_id not in self.known:
            self.known[batch.request_id] = list(batch.waiters)
            self.stored[batch.key] += [number for number, _ in batch.waiters]
        assert self.known[batch.request_id] == batch.waiters
        return True

    def tell(self, batch):
        for waiter in batch.waiters:
            assert waiter not in self.told
            self.told.add(waiter)
            del self.waiting[waiter]

    @precondition(lambda self: self.numbered)
    @rule(data=st.data())
    def answer(self, data):
        batch = self.land(data)
        if self.execute(batch):
            self.batcher.handle_done(batch)
            self.tell(batch)
        elif not self.batcher.handle_refused(batch):
            self.tell(batch)

    @precondition(lambda self: self.numbered)
    @rule(data=st.data(), happened=st.booleans())
    def lose_answer(self, data, happened):
        batch = self.land(data)
        if happened:
            self.execute(batch)
        if not self.batcher.handle_unknown(self.now, batch):
            self.tell(batch)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def withdraw(self, data):
        waiter = data.draw(st.sampled_from(sorted(self.waiting)))
        if self.batcher.withdraw(self.waiting[waiter][0], waiter):
            del self.waiting[waiter]

    @invariant()
    def room_is_what_waits(self):
        if not hasattr(self, "gather"):
            return
        assert self.batcher.jobs == len(self.waiting)
        assert self.batcher.payload_bytes == sum(size for _, size in self.waiting.values())

    @invariant()
    def each_lane_is_stored_in_order_and_once(self):
        for numbers in getattr(self, "stored", {}).values():
            assert numbers == sorted(set(numbers))

    def teardown(self):
        """Left alone with a good server, everything ends."""
        for _ in range(200):
            self.now += 5.0
            self.numbered += self.batcher.batches_to_send(self.now)
            for batch in self.numbered:
                if self.execute(batch):
                    self.batcher.handle_done(batch)
                    self.tell(batch)
                elif not self.batcher.handle_refused(batch):
                    self.tell(batch)
            self.numbered = []
            self.each_lane_is_stored_in_order_and_once()
        assert not self.waiting


TestGather = GatherMachine.TestCase
