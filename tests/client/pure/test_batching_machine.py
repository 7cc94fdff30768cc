"""Gathering under random conditions: every push is stored once, in order, and its caller told once.

Random callers against a server that answers, loses answers, and refuses what it dislikes. The
server knows calls and job keys as the real one does, so a push that is stored twice shows.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from jobline import BufferFull
from jobline._push.batch import Batch, Own
from jobline._push.batching import BatchLimits, PushBatcher


class Waiter(NamedTuple):
    """Who waits for a push, and what the push has of its own."""

    number: int
    lane: str
    size: int
    job_key: str
    headers: str
    is_bad: bool


class GatherMachine(RuleBasedStateMachine):
    """One client and its server."""

    LIMITS = BatchLimits(
        jobs=12, payload_bytes=40, batch_jobs=4, batch_bytes=9, batch_header_keys=3, flights=2
    )

    @initialize()
    def begin(self):
        numbers = itertools.count(1)
        self.batcher: PushBatcher[str, Waiter] = PushBatcher(
            self.LIMITS,
            request_ids=lambda: f"r{next(numbers)}",
            over=lambda _id, _known: None,
            chance=lambda: 0.5,
        )
        self.now = 0.0
        self.numbers = itertools.count()
        self.waiting: set[Waiter] = set()
        self.flying: list[Batch[str, Waiter]] = []
        self.stored: list[Waiter] = []
        self.calls: dict[str, list[Waiter]] = {}
        self.keys: dict[str, Waiter] = {}
        self.told: set[Waiter] = set()

    @rule(
        lane=st.sampled_from("ab"),
        size=st.integers(0, 12),
        job_key=st.sampled_from(["", "", "k", "l"]),
        headers=st.sampled_from(["", "x", "y", "zw"]),
        is_bad=st.booleans(),
    )
    def push(self, lane, size, job_key, headers, is_bad):
        waiter = Waiter(next(self.numbers), lane, size, job_key, headers, is_bad)
        own = Own(job_key, headers=dict.fromkeys(headers, "v") if headers else None)
        try:
            self.batcher.add(self.now, lane, b"x" * size, waiter, own)
        except BufferFull:
            assert self.batcher.jobs == 12 or self.batcher.payload_bytes + size > 40
        else:
            self.waiting.add(waiter)

    @rule(pause=st.floats(0, 3))
    def send(self, pause):
        self.now += pause
        for batch in self.batcher.batches_to_send(self.now):
            self.check(batch)
            self.flying.append(batch)

    def check(self, batch):
        assert len(batch.waiters) <= 4
        assert batch.payload_bytes <= 9 or len(batch.waiters) == 1
        assert batch.payload_bytes == batch.pushes.payload_bytes()
        assert batch.key not in [other.key for other in self.flying]
        assert len(set().union(*(waiter.headers for waiter in batch.waiters))) <= 3
        assert bool(batch.request_id) == any(not waiter.job_key for waiter in batch.waiters)
        pushes = batch.pushes
        columns = zip(pushes.payloads, pushes.job_keys, pushes.headers, strict=True)
        for waiter, (payload, job_key, headers) in zip(batch.waiters, columns, strict=True):
            assert waiter.lane == batch.key
            assert (waiter.size, waiter.job_key) == (len(payload), job_key)
            assert set(waiter.headers) == set(headers or ())

    def land(self, data):
        return self.flying.pop(data.draw(st.integers(0, len(self.flying) - 1)))

    def execute(self, batch):
        """What the server does: nothing if one is bad or it knows the call; known keys are not
        stored again.
        """
        if any(waiter.is_bad for waiter in batch.waiters):
            return False
        if batch.request_id in self.calls:
            assert self.calls[batch.request_id] == batch.waiters
            return True
        if batch.request_id:
            self.calls[batch.request_id] = list(batch.waiters)
        for waiter in batch.waiters:
            first = self.keys.setdefault(waiter.job_key, waiter) if waiter.job_key else waiter
            if first is waiter and waiter not in self.stored:
                self.stored.append(waiter)
        return True

    def tell(self, batch):
        for waiter in batch.waiters:
            assert waiter not in self.told
            self.told.add(waiter)
            self.waiting.remove(waiter)

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def answer(self, data):
        self.finish(self.land(data))

    def finish(self, batch):
        if self.execute(batch):
            self.batcher.handle_done(batch)
            self.tell(batch)
            assert all(waiter in self.stored or waiter.job_key for waiter in batch.waiters)
        elif not self.batcher.handle_refused(batch):
            self.tell(batch)

    @precondition(lambda self: self.flying)
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
        if self.batcher.withdraw(waiter.lane, waiter):
            self.waiting.remove(waiter)

    @invariant()
    def room_is_what_waits(self):
        if hasattr(self, "batcher"):
            assert self.batcher.jobs == len(self.waiting)
            assert self.batcher.payload_bytes == sum(waiter.size for waiter in self.waiting)

    @invariant()
    def each_lane_is_stored_in_order_and_once(self):
        """Those with a key keep their order, and so do those without one."""
        for lane, has_key in itertools.product("ab", (False, True)):
            numbers = [
                waiter.number
                for waiter in getattr(self, "stored", ())
                if waiter.lane == lane and bool(waiter.job_key) == has_key
            ]
            assert numbers == sorted(set(numbers))

    def teardown(self):
        """Left alone with a good server, everything ends."""
        for _ in range(200):
            self.now += 5.0
            self.flying += self.batcher.batches_to_send(self.now)
            for batch in self.flying:
                self.finish(batch)
            self.flying = []
            self.each_lane_is_stored_in_order_and_once()
        assert not self.waiting


TestGather = GatherMachine.TestCase
