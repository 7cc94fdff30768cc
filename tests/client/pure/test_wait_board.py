"""The waits of one client share calls; nobody is told twice, too late, or of another's trouble."""

from __future__ import annotations

import pytest

from jobline._wait.wait_board import (
    CALLS_AT_ONCE,
    CALLS_MAX,
    GATHER_SECONDS,
    HANDOVER_SECONDS,
)
from jobline._wait.wait_call import IDS_MAX, WaitCall
from jobline.errors import DataLoss, Internal, PermissionDenied, Unavailable
from tests.client.pure.wait_line import Line, Waiter, ended, gone


def test_waits_that_begin_together_share_a_call():
    """It is open until the last of them gives up."""
    line = Line()
    first, second = Waiter(1, 2, until=30.0), Waiter(3, until=50.0)
    line.add(first)
    line.add(second)
    (call,) = line.opened(10.0)
    assert list(call.request().ids) == [1, 2, 3]
    assert call.request().timeout.seconds == 40
    for id_ in (3, 1, 2):
        line.take(11.0, call, ended(id_))
    assert (first.ended, second.ended) == ([1, 2], [3])
    assert (line.next_deadline(), line.hung_up) == (None, [])


def test_a_job_that_is_asked_for_is_not_asked_for_again():
    """Who waits for it, too, is told as well, with an answer of its own."""
    line = Line()
    first, second = Waiter(7), Waiter(7)
    line.add(first)
    (call,) = line.opened(0.0)
    line.add(second)
    assert line.opened(0.0) == []
    line.take(1.0, call, ended(7))
    assert first.told == second.told == [ended(7)]
    assert first.told[0] is not second.told[0]


def test_waits_gather_where_some_calls_are_open():
    """So a client that begins one after the other has no call for each."""
    line = Line()
    for id_ in range(1, CALLS_AT_ONCE + 1):
        line.add_each(id_)
        assert len(line.opened(0.0)) == 1
    line.add_each(100, 101)
    assert line.opened(0.0) == []
    assert line.next_deadline() == GATHER_SECONDS
    (call,) = line.opened(GATHER_SECONDS)
    assert call.ids == {100, 101}


def test_a_call_asks_for_so_many_jobs_and_no_more():
    """The protocol has a limit."""
    line = Line()
    line.add_each(*range(1, 2 * IDS_MAX + 2))
    assert [len(call.ids) for call in line.opened(0.0)] == [IDS_MAX, IDS_MAX, 1]


def test_who_leaves_disturbs_nobody():
    """The call goes on for the others, and is hung up when nobody is left."""
    line = Line()
    first, second = line.add_each(1, 2)
    (call,) = line.opened(0.0)
    line.leave(first)
    line.leave(first)
    assert line.hung_up == []
    line.take(1.0, call, ended(1))
    assert first.told == []
    line.leave(second)
    assert (line.hung_up, line.calls, line.next_deadline()) == ([call], 0, None)


def test_a_call_that_nobody_needs_is_hung_up():
    """The server need not keep it until its time is over."""
    line = Line()
    first, second = line.add_each(1, 2)
    (call,) = line.opened(0.0)
    line.leave(second)
    line.leave(first)
    assert (line.hung_up, line.calls) == ([call], 0)
    line.take(1.0, call, ended(1))
    line.end(1.0, call, Unavailable("it was hung up"))
    assert line.next_deadline() is None


def test_calls_that_break_together_are_one_failure():
    """After a restart of the server all go on, after one pause, in as few calls as can be."""
    line = Line()
    waiters = []
    calls = []
    for id_ in range(1, 6):
        waiters += line.add_each(id_)
        calls += line.opened(0.0)
    for call in calls:
        line.end(1.0, call, Unavailable("the server stopped"))
    assert line.next_deadline() == pytest.approx(1.05)
    assert line.opened(1.04) == []
    (call,) = line.opened(1.06)
    assert call.ids == {1, 2, 3, 4, 5}
    line.end(1.06, call, Unavailable("still"))
    assert line.next_deadline() == pytest.approx(1.16)  # the second try in a row
    (call,) = line.opened(1.2)
    line.take(2.0, call, ended(1))
    line.end(2.0, call, Unavailable("again"))
    assert line.next_deadline() == pytest.approx(2.05)  # an answer ends the row
    assert [waiter.ended for waiter in waiters] == [[1], [], [], [], []]


def test_who_cannot_ask_again_in_time_is_told_why():
    """Not that the time is over: no server has answered."""
    line = Line()
    short, long = Waiter(1, 3, until=1.04), Waiter(2, until=50.0)
    line.add(short)
    line.add(long)
    (call,) = line.opened(0.0)
    line.end(1.0, call, Unavailable("the server stopped"))
    assert [str(one) for one in short.told] == ["the server stopped"]
    assert long.told == []
    late = Waiter(9, until=1.02)
    line.add(late)
    assert str(line.trouble_of(late)) == "the server stopped"
    line.leave(late)
    (call,) = line.opened(1.05)
    assert call.ids == {2}
    assert line.trouble_of(long) is None


def test_a_call_that_ends_early_is_made_again():
    """That the time is over is for the client to say; it does not ask in a hurry."""
    line = Line()
    (waiter,) = line.add_each(1)
    (call,) = line.opened(0.0)
    line.end(0.0, call)
    assert line.opened(0.0) == []
    assert len(line.opened(0.05)) == 1
    assert (waiter.told, line.trouble_of(waiter)) == ([], None)


def test_a_refusal_is_told_to_all():
    """Each gets an error of its own."""
    line = Line()
    first, second = line.add_each(1, 2)
    (call,) = line.opened(0.0)
    line.end(0.0, call, PermissionDenied("no"))
    (one,), (two,) = first.told, second.told
    assert isinstance(one, PermissionDenied)
    assert isinstance(two, PermissionDenied)
    assert one is not two
    assert line.next_deadline() is None


def test_a_damaged_job_ends_the_wait_for_it_alone():
    """The answer does not say which it is, so the jobs are asked for apart until it is alone."""
    line = Line()
    waiters = line.add_each(*range(1, 9))
    left = line.opened(0.0)
    while left:
        call = left.pop()
        if 5 in call.ids:
            line.end(0.0, call, DataLoss("damaged"))
        else:
            for id_ in sorted(call.ids):
                line.take(0.0, call, ended(id_))
            line.end(0.0, call)
        left += line.opened(0.0)
    assert isinstance(waiters[4].told[0], DataLoss)
    assert [one.ended for one in waiters if one.ids != (5,)] == [[1], [2], [3], [4], [6], [7], [8]]


def test_an_answer_that_nobody_asked_for_ends_its_call():
    """Such a server is not believed."""
    line = Line()
    first, second = line.add_each(1, 2)
    (call,) = line.opened(0.0)
    line.take(0.0, call, ended(3))
    assert line.hung_up == [call]
    for waiter in (first, second):
        assert isinstance(waiter.told[0], Internal)


def crowded() -> tuple[Line, list[Waiter], list[WaitCall], WaitCall]:
    """As many calls as there may be, and the one that took over the smallest."""
    line = Line()
    waiters: list[Waiter] = []
    calls: list[WaitCall] = []
    for number in range(1, CALLS_MAX + 1):
        waiters += line.add_each(number)
        calls += line.opened(number * 2 * GATHER_SECONDS)
    waiters += line.add_each(1_000)
    (newest,) = line.opened(1.0)
    return line, waiters, calls, newest


def test_the_next_call_takes_over_where_many_are_open():
    """The old ones stay open until the server must have heard of it."""
    line, waiters, calls, newest = crowded()
    assert newest.ids == {*range(1, CALLS_MAX // 2 + 1), 1_000}
    assert line.calls == CALLS_MAX + 1
    line.take(1.1, calls[3], ended(4))
    line.take(1.1, newest, ended(4))
    assert waiters[3].ended == [4]
    assert line.opened(1.0 + HANDOVER_SECONDS) == []
    assert line.hung_up == calls[: CALLS_MAX // 2]
    line.take(9.0, newest, ended(5))
    assert waiters[4].ended == [5]


def test_how_a_job_ended_that_is_not_kept_is_known_by_the_older_call():
    """It was open then; the newer one found nothing."""
    line, waiters, calls, newest = crowded()
    line.take(1.1, newest, gone(4))
    assert waiters[3].told == []
    line.opened(1.0 + HANDOVER_SECONDS)
    assert calls[3] not in line.hung_up
    line.take(7.0, calls[3], ended(4))
    assert waiters[3].told == [ended(4)]


def test_what_neither_call_knows_is_gone():
    """The older one has broken before it could tell."""
    line, waiters, calls, newest = crowded()
    line.take(1.1, newest, gone(4))
    line.end(1.2, calls[3], Unavailable("broken"))
    (again,) = line.opened(1.3)
    assert again.ids == {4}
    line.take(1.4, again, gone(4))
    assert waiters[3].told == [gone(4)]


def test_jobs_of_a_newer_call_that_breaks_are_still_asked_for_by_the_older_ones():
    """Only what it alone asked for is asked for again."""
    line, waiters, calls, newest = crowded()
    line.end(1.1, newest, Unavailable("broken"))
    (again,) = line.opened(1.2)
    assert 1_000 in again.ids
    line.take(1.3, calls[3], ended(4))
    assert waiters[3].ended == [4]
