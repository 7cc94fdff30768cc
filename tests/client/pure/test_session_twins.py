"""Both ends of the stream against each other, in memory: the client's session and the server's.

What stands between them is a wire that delays and loses, and a table of leases where the server
has its engine. Frames go through the server's own decoder and encoder, so each end reads what the
other wrote.
"""

from __future__ import annotations

import itertools

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from jobline._enums import ReleaseReason
from jobline._requests import fail_item
from jobline._stream.frames import opening_of, release_of_lease
from jobline._stream.session import Session as ClientSession
from jobline.v1 import job_service_pb2 as pb
from jobline_server.dispatch.frames import ServerFrame
from jobline_server.dispatch.session import Session as ServerSession
from jobline_server.engine.commands import Leased, LeasedRun
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import JobOptions, Now, RevokeReason, SettleOutcome
from jobline_server.rpc.convert.stream import server_messages, worker_frame

HEARTBEAT_MS = 10_000
OPTIONS = JobOptions()


class Leases:
    """Where the server has its engine: who holds what, and what was settled how often."""

    def __init__(self):
        self.held: dict[int, int] = {}
        self.waiting: list[int] = []
        self.deliveries: dict[int, int] = {}
        self.accepted: list[tuple[int, int]] = []
        self.ids = itertools.count(1)

    def lease(self, count):
        if self.waiting:
            first, count = self.waiting.pop(0), 1
        else:
            first = next(self.ids)
            for _ in range(count - 1):
                next(self.ids)
        delivery = self.deliveries.get(first, 0) + 1
        for id_ in range(first, first + count):
            self.held[id_] = self.deliveries[id_] = delivery
        return LeasedRun(first, delivery, "q", OPTIONS, Payloads.of([b"x"] * count), 30_000, 0)

    def settle(self, id_, delivery, *, again):
        if (id_, delivery) in self.accepted:
            return SettleOutcome.ALREADY_DONE
        if self.held.get(id_) != delivery:
            return SettleOutcome.LEASE_LOST
        del self.held[id_]
        self.accepted.append((id_, delivery))
        if again:
            self.waiting.append(id_)
        return SettleOutcome.DONE


class TwinMachine(RuleBasedStateMachine):
    """Random work, delays, broken connections, lost leases and drains."""

    @initialize(window=st.integers(0, 6))
    def begin(self, window):
        opening = opening_of(pb.WorkerDescription(id="w"), queues=[("q", 1)], handlers=[])
        self.is_connected = False
        self.client = ClientSession(opening, window=window, window_bytes=1 << 20)
        self.server: ServerSession | None = None
        self.leases = Leases()
        self.now = 0.0
        self.to_server: list[bytes] = []
        self.to_client: list[bytes] = []
        self.started: list[tuple[int, int]] = []
        self.running: dict[int, int] = {}
        self.connect()

    @property
    def clock(self):
        return Now(int(self.now * 1000), int(self.now * 1000))

    # ------------------------------------------------------------------ the wire

    @precondition(lambda self: not self.is_connected)
    @rule()
    def connect(self):
        self.is_connected = True
        self.client.connect(self.now)

    @precondition(lambda self: self.is_connected)
    @rule()
    def break_off(self):
        """Whatever was on its way is lost, in both directions."""
        self.is_connected = False
        self.to_server, self.to_client, self.server = [], [], None
        self.client.disconnect()

    @precondition(lambda self: self.is_connected)
    @rule()
    def client_speaks(self):
        self.to_server += [
            frame.SerializeToString() for frame in self.client.frames_to_send(self.now)
        ]

    @precondition(lambda self: bool(getattr(self, "to_server", None)))
    @rule()
    def server_hears(self):
        self.server_takes(worker_frame(pb.StreamRequest.FromString(self.to_server.pop(0))))

    @precondition(lambda self: bool(getattr(self, "server", None)))
    @rule()
    def server_speaks(self):
        assert self.server is not None
        frame: ServerFrame | None = self.server.frame_to_send(self.clock)
        if frame is not None:
            self.to_client += server_messages(frame)

    @precondition(lambda self: bool(getattr(self, "to_client", None)))
    @rule()
    def client_hears(self):
        frame = pb.StreamResponse.FromString(self.to_client.pop(0))
        received = self.client.handle_frame(self.now, frame)
        for job in received.jobs:
            assert (job.id, job.delivery) not in self.started
            self.started.append((job.id, job.delivery))
            self.running[job.id] = job.delivery
        for lost in received.lost:
            if self.running.get(lost.id) == lost.delivery:
                del self.running[lost.id]

    @rule(pause=st.floats(0.1, 12))
    def wait(self, pause):
        self.now += pause

    # ------------------------------------------------------------------ the server

    def server_takes(self, frame):
        if frame.open is not None:
            self.server = ServerSession(frame.open, "s", self.clock, heartbeat_ms=HEARTBEAT_MS)
            held = sorted(self.leases.held.items()) if frame.open.session else []
            if not frame.open.session:
                for id_ in self.leases.held:
                    self.leases.waiting.append(id_)
                self.leases.held.clear()
            self.server.opened([one for one, _ in held], [delivery for _, delivery in held])
        server = self.server
        assert server is not None
        server.handle_any(self.clock)
        for settle in frame.settles:
            server.handle_settle()
            leases = [
                (id_, d, False)
                for id_, d in zip(settle.ack_ids, settle.ack_deliveries, strict=True)
            ]
            leases += [(item.id, item.delivery, True) for item in (*settle.fails, *settle.releases)]
            outcomes = [self.leases.settle(id_, d, again=again) for id_, d, again in leases]
            exceptions = [(i, o) for i, o in enumerate(outcomes) if o is not SettleOutcome.DONE]
            server.confirm(settle.seq, exceptions)
        if frame.window is not None:
            server.handle_window(frame.window)
        if frame.drain:
            server.handle_drain()
        server.in_flight.jobs = len(self.leases.held)

    @precondition(lambda self: bool(getattr(self, "server", None)))
    @rule(most=st.integers(1, 4))
    def hand_out(self, most):
        assert self.server is not None
        room, _ = self.server.room()
        if room:
            self.server.deliver(Leased(runs=[self.leases.lease(min(room, most))]))
            self.server.in_flight.jobs = len(self.leases.held)
            assert len(self.leases.held) <= self.server.window.jobs

    @precondition(lambda self: hasattr(self, "leases") and bool(self.leases.held))
    @rule(data=st.data())
    def lose_lease(self, data):
        """A lease ends at the server; the worker is told if there is a stream."""
        id_ = data.draw(st.sampled_from(sorted(self.leases.held)))
        delivery = self.leases.held.pop(id_)
        self.leases.waiting.append(id_)
        if self.server is not None:
            self.server.revoke(id_, delivery, RevokeReason.LEASE_LOST)
            self.server.in_flight.jobs = len(self.leases.held)

    # ------------------------------------------------------------------ the worker

    @precondition(lambda self: bool(getattr(self, "running", None)))
    @rule(data=st.data(), how=st.sampled_from(["ack", "result", "fail", "release"]))
    def finish(self, data, how):
        id_ = data.draw(st.sampled_from(sorted(self.running)))
        delivery = self.running.pop(id_)
        if how in {"ack", "result"}:
            assert self.client.ack(id_, delivery, b"r" if how == "result" else None)
        elif how == "fail":
            assert self.client.settle(fail_item((id_, delivery), "no"))
        else:
            assert self.client.settle(release_of_lease(id_, delivery, ReleaseReason.SNOOZE))

    @precondition(lambda self: bool(getattr(self, "running", None)))
    @rule(data=st.data())
    def report(self, data):
        id_ = data.draw(st.sampled_from(sorted(self.running)))
        assert self.client.report(id_, self.running[id_], progress=50.0, checkpoint=b"c")

    @rule(window=st.integers(0, 6))
    def change_window(self, window):
        self.client.set_window(window, 1 << 20)

    @invariant()
    def what_runs_is_held(self):
        if hasattr(self, "client"):
            assert self.client.held == self.running

    def teardown(self):
        """Left alone with a good wire, a drained worker holds nothing, and the server agrees."""
        if not hasattr(self, "client"):
            return
        self.client.drain()
        for _ in range(60):
            if not self.is_connected:
                self.connect()
            self.now += 1.0
            while self.running:
                id_, delivery = self.running.popitem()
                self.client.ack(id_, delivery)
            self.client_speaks()
            while self.to_server:
                self.server_hears()
            if self.server is not None:
                self.server_speaks()
            while self.to_client:
                self.client_hears()
        assert self.client.is_confirmed
        assert self.client.may_half_close
        assert not self.leases.held
        assert not self.client.is_silent(self.now)
        assert self.server is not None
        self.server.handle_half_close()
        assert self.server.is_over()


TestTwins = TwinMachine.TestCase
TestTwins.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
