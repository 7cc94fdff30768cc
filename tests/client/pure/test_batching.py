"""Gathering: pushes that come while a call flies go together, in order, bounded, and never
twice.
"""

from __future__ import annotations

import itertools

import pytest

from jobline import BufferFull
from jobline._backoff import ASKED_MAX, RECONNECT, Pauses, as_asked
from jobline._push.batch import Own
from jobline._push.batching import BatchLimits, PushBatcher


def batcher(**limits):
    numbers = itertools.count(1)
    return PushBatcher(
        BatchLimits(**limits),
        request_ids=lambda: f"r{next(numbers)}",
        over=lambda _id, _known: None,
        chance=lambda: 1.0,
    )


def add(target, *waiters, key="lane", size=1, job_key="", headers=None, now=0.0):
    own = Own(job_key, headers=headers)
    return [target.add(now, key, b"x" * size, waiter, own) for waiter in waiters]


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
    """The key makes a retry safe; one without a key among them needs the number of the call."""
    pushes = batcher()
    add(pushes, 1, job_key="k1")
    add(pushes, 2, job_key="k2")
    (batch,) = pushes.batches_to_send(0.0)
    assert (batch.pushes.job_keys, batch.request_id) == (["k1", "k2"], "")
    add(pushes, 3)
    add(pushes, 4, job_key="k3")
    pushes.handle_done(batch)
    (batch,) = pushes.batches_to_send(0.0)
    assert (batch.pushes.job_keys, batch.request_id) == (["", "k3"], "r1")


def test_each_push_keeps_the_headers_it_has_of_its_own():
    """Beside its payload, in the order of the pushes."""
    pushes = batcher()
    add(pushes, 1, headers={"a": "1"})
    add(pushes, 2)
    add(pushes, 3, headers={"a": "3"})
    assert pushes.withdraw("lane", 1)
    (batch,) = pushes.batches_to_send(0.0)
    assert batch.pushes.headers == [None, {"a": "3"}]


def test_a_batch_is_cut_by_the_number_of_its_header_keys():
    """Each key is a column with a value for every push, so many keys would cost their product."""
    pushes = batcher(batch_header_keys=3)
    for number, keys in enumerate(["ab", "bc", "", "cd", "wxyz", "w"]):
        add(pushes, number, headers=dict.fromkeys(keys, "v"))
    seen = []
    while batches := pushes.batches_to_send(0.0):
        seen += waiters(batches)
        pushes.handle_done(batches[0])
    assert seen == [[0, 1, 2], [3], [4], [5]]


def test_a_refused_batch_is_split_first_by_whether_its_pushes_have_keys():
    """Jobs with a key and jobs without one count towards different limits, and refuse only each
    other.
    """
    pushes = batcher()
    for number, job_key in enumerate(["", "k1", "", "k2"]):
        add(pushes, number, job_key=job_key, headers={"n": str(number)})
    (batch,) = pushes.batches_to_send(0.0)
    assert pushes.handle_refused(batch)
    (plain,) = pushes.batches_to_send(0.0)
    pushes.handle_done(plain)
    (keyed,) = pushes.batches_to_send(0.0)
    assert (plain.waiters, plain.request_id, plain.payload_bytes) == ([0, 2], "r2", 2)
    assert plain.pushes.headers == [{"n": "0"}, {"n": "2"}]
    assert (keyed.waiters, keyed.request_id) == ([1, 3], "")
    assert keyed.pushes.job_keys == ["k1", "k2"]
    assert pushes.handle_refused(keyed)
    assert waiters(pushes.batches_to_send(0.0)) == [[1]]


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


@pytest.mark.parametrize(
    ("asked", "pause"), [(None, 0.5), (0.0, 0.5), (2.0, 2.0), (86_400.0, ASKED_MAX)]
)
def test_server_is_asked_again_when_it_said_but_within_bounds(asked, pause):
    """A worker whose server asks for a day would not come back."""
    assert as_asked(asked, 0.5) == pause
    assert as_asked(asked, ASKED_MAX + 1) == ASKED_MAX + 1


def test_pauses_grow_to_their_longest_and_are_drawn_from_the_upper_half():
    """Neither does one client hammer a server, nor do all return at the same moment."""
    pauses = Pauses(first=1.0, longest=5.0)
    assert [pauses.after(tries, lambda: 1.0) for tries in (1, 2, 3, 4, 99)] == [1, 2, 4, 5, 5]
    assert pauses.after(1, lambda: 0.0) == 0.5
    assert RECONNECT.after(10**6, lambda: 1.0) == RECONNECT.longest
