"""Children that a worker pushes for its handlers: tried until the server has answered."""

from __future__ import annotations

import threading

import pytest

from jobline import (
    FlowJob,
    InvalidArgument,
    JobNotFound,
    LeaseLost,
    NotConnected,
    QueueFull,
    ServerFull,
    TooLarge,
    Unavailable,
    WaitFor,
)
from jobline._flow_values import FlowNode
from jobline._identity import Identity
from jobline._leased import LeasedJob
from jobline._worker import flow_calls
from jobline._worker.flow_calls import FlowCalls
from jobline._worker.stream import Address
from jobline.errors import ErrorFacts
from jobline.testing import make_context
from jobline.v1 import job_service_pb2 as pb

CHILD = FlowJob("leaves")


class Session:
    """A session in whose hands one job is."""

    def __init__(self) -> None:
        self.is_held = True
        self.confirms = True
        self.fences = 0
        self.begun: set[tuple[int, int]] = set()
        self.settled: list[pb.FailItem] = []
        self.released: list[pb.ReleaseItem] = []
        self.handed_over: list[bool] = []

    def holds(self, _job: LeasedJob) -> bool:
        return self.is_held

    def fence(self, passed) -> None:
        self.fences += 1
        if self.confirms:
            passed()

    def hand_over(self, _job: LeasedJob, *, is_lost: bool = False) -> None:
        self.is_held = False
        self.handed_over.append(is_lost)

    def settle(self, item: pb.FailItem | pb.ReleaseItem) -> None:
        self.is_held = False
        if isinstance(item, pb.FailItem):
            self.settled.append(item)
        else:
            self.released.append(item)


class Client:
    """A server that answers as it is told to."""

    def __init__(self, *answers: Exception | None) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[int, tuple[FlowJob, ...], str]] = []
        self.flows = self

    def add_children(self, job: LeasedJob, *children: FlowJob, request_id: str) -> None:
        self.requests.append((job.id, children, request_id))
        answer = self.answers.pop(0)
        if answer is not None:
            raise answer

    def children(self, _job_id: int) -> list[FlowNode]:
        answer = self.answers.pop(0)
        if answer is not None:
            raise answer
        return []

    def close(self) -> None:
        """Nothing is open."""


def calls_of(session: Session, client: Client) -> FlowCalls:
    calls = FlowCalls(Address("nowhere:1", Identity()), session)  # type: ignore[arg-type]  # a fake
    calls._client = client  # type: ignore[assignment]  # a fake
    return calls


def pushed(session: Session, client: Client, monkeypatch) -> None:
    """What a handler waits for is pushed, or given up."""
    monkeypatch.setattr(flow_calls, "PAUSE", 0.001)
    calls = calls_of(session, client)
    ended = threading.Event()
    calls.done = lambda _context: ended.set()
    calls.push(make_context(id=7), WaitFor(CHILD))
    assert ended.wait(30)
    assert not calls.pending
    calls.close()


def test_unknown_outcome_is_tried_again_as_the_same_request(monkeypatch):
    session, client = Session(), Client(Unavailable("gone"), Unavailable("gone"), None)
    pushed(session, client, monkeypatch)
    assert [(one, children) for one, children, _ in client.requests] == [(7, (CHILD,))] * 3
    assert len({request_id for _, _, request_id in client.requests}) == 1
    assert (session.handed_over, session.settled) == ([False], [])


def test_server_that_restarts_before_the_first_call_costs_no_attempt(monkeypatch):
    """The client was never connected, so nothing was sent, which is definite; but no refusal."""
    session, client = Session(), Client(NotConnected("nobody is there"), None)
    pushed(session, client, monkeypatch)
    assert (session.handed_over, session.settled) == ([False], [])


def test_lost_lease_is_dropped(monkeypatch):
    session = Session()
    pushed(session, Client(LeaseLost("gone")), monkeypatch)
    assert (session.handed_over, session.settled) == ([True], [])


@pytest.mark.parametrize("error", [InvalidArgument("no"), TypeError("no"), TooLarge("no")])
def test_refusal_fails_the_job(monkeypatch, error):
    session = Session()
    pushed(session, Client(error), monkeypatch)
    assert session.handed_over == []
    assert [item.error.type for item in session.settled] == [type(error).__name__]


def test_no_room_is_waited_for_and_costs_no_attempt(monkeypatch):
    """As the same request: nothing was stored, but the next answer may be lost."""
    full = QueueFull("full", ErrorFacts(retry_after=0.002))
    session, client = Session(), Client(full, ServerFull("full"), None)
    pushed(session, client, monkeypatch)
    assert len({request_id for _, _, request_id in client.requests}) == 1
    assert len(client.requests) == 3
    assert (session.handed_over, session.settled) == ([False], [])


def test_room_is_not_waited_for_without_end(monkeypatch):
    """It may be that the children are more than there ever is room for."""
    monkeypatch.setattr(flow_calls, "FULL_SECONDS", 0.0)
    session = Session()
    pushed(session, Client(QueueFull("full")), monkeypatch)
    assert [item.error.type for item in session.settled] == ["QueueFull"]


class FullServer(Client):
    """A server without room, until told otherwise; says when it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Semaphore(0)
        self.has_room = False

    def add_children(self, job: LeasedJob, *children: FlowJob, request_id: str) -> None:
        self.answers = [None if self.has_room else ServerFull("full", ErrorFacts(retry_after=3600))]
        try:
            super().add_children(job, *children, request_id=request_id)
        finally:
            self.asked.release()


def test_worker_that_stops_waits_for_no_room():
    """Nor does it take its grace period: the job is released as others are, and costs no attempt.
    What a handler returns from then on is pushed if it can be at once.
    """
    session, client = Session(), FullServer()
    calls, ended = calls_of(session, client), threading.Semaphore(0)
    calls.done = lambda _context: ended.release()
    calls.push(make_context(id=7), WaitFor(CHILD))
    assert client.asked.acquire(timeout=30)
    calls.stop()
    assert ended.acquire(timeout=10)
    assert [item.id for item in session.released] == [7]
    assert session.released[0].why == pb.RELEASE_REASON_INTERRUPTED
    for client.has_room in (True, False):
        session.is_held = True
        calls.push(make_context(id=8), WaitFor(CHILD))
        assert ended.acquire(timeout=10)
    assert session.handed_over == [False]
    assert [item.id for item in session.released] == [7, 8]
    assert session.settled == []
    calls.close()


def test_job_that_was_lost_while_it_waited_is_not_released():
    session, client = Session(), FullServer()
    calls, ended = calls_of(session, client), threading.Event()
    calls.done = lambda _context: ended.set()
    calls.push(make_context(id=7), WaitFor(CHILD))
    assert client.asked.acquire(timeout=30)
    session.is_held = False
    calls.stop()
    assert ended.wait(10)
    assert (session.released, session.settled) == ([], [])
    calls.close()


def test_job_that_may_run_only_once_waits_for_room_until_the_end(monkeypatch):
    """A release would end it."""
    monkeypatch.setattr(flow_calls, "as_asked", lambda _asked, _pause: 0.001)
    session, client = Session(), FullServer()
    calls, ended = calls_of(session, client), threading.Event()
    calls.done = lambda _context: ended.set()
    context = make_context(id=7)
    session.begun.add((7, context.job.delivery))
    calls.stop()
    calls.push(context, WaitFor(CHILD))
    for _ in range(3):
        assert client.asked.acquire(timeout=30)
    client.has_room = True
    assert ended.wait(30)
    assert (session.handed_over, session.released) == ([False], [])
    calls.close()


def test_job_that_is_not_held_any_more_is_left_alone(monkeypatch):
    """Its lease was lost while the handler ran, or the worker stops."""
    session, client = Session(), Client()
    session.is_held = False
    pushed(session, client, monkeypatch)
    assert (client.requests, session.handed_over, session.settled) == ([], [], [])


def test_reports_come_before_the_children(monkeypatch):
    """Nothing is pushed until the server has confirmed them; a fence that the session has lost,
    with what the server refused, is put up again.
    """
    session, client = Session(), Client(None)
    session.confirms = False
    fence = session.fence

    def at_last(passed) -> None:
        session.confirms = session.fences == 2
        assert client.requests == []
        fence(passed)

    session.fence = at_last  # type: ignore[method-assign]  # a fake
    pushed(session, client, monkeypatch)
    assert session.fences == 3
    assert session.handed_over == [False]


def reading(client: Client, monkeypatch) -> FlowCalls:
    """Calls of a worker whose handlers read their children from this server."""
    monkeypatch.setattr(flow_calls, "PAUSE", 0.001)
    return calls_of(Session(), client)


def test_children_are_read_from_a_server_that_comes_back(monkeypatch):
    calls = reading(Client(NotConnected("away"), Unavailable("away"), None), monkeypatch)
    assert calls.children(7) == []


@pytest.mark.parametrize("ends_by", ["patience", "close"])
def test_children_of_a_server_that_stays_away_are_given_up(monkeypatch, ends_by):
    client = Client(*[Unavailable("away")] * 2)
    calls = reading(client, monkeypatch)
    if ends_by == "patience":
        monkeypatch.setattr(flow_calls, "PATIENCE", -1.0)
    else:
        calls.close()
    with pytest.raises(Unavailable):
        calls.children(7)
    assert len(client.answers) == 1


def test_refusal_of_a_read_is_raised_at_once(monkeypatch):
    client = Client(JobNotFound("gone"), None)
    with pytest.raises(JobNotFound):
        reading(client, monkeypatch).children(7)
    assert len(client.answers) == 1
