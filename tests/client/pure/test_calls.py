"""Numbers of push calls: what the server may forget, and what it must keep."""

from __future__ import annotations

import itertools
from contextlib import suppress

import pytest

from jobline._push.batching import BatchLimits, PushBatcher
from jobline._push.calls import call_of, id_of, identify
from jobline._push.producers import SPAN_MAX, PushCalls
from jobline.errors import OutcomeUnknown, QueueFull
from jobline.v1 import job_service_pb2 as pb


def parts(text: str) -> tuple[str, int, int]:
    _, producer, sequence, below = text.split(":")
    return producer, int(sequence), int(below)


def test_a_call_says_which_ones_before_it_are_over():
    """Trial C1: all below the oldest one under way."""
    calls = PushCalls()
    one, two = calls(), calls()
    producer = parts(one)[0]
    assert [parts(one), parts(two)] == [(producer, 1, 1), (producer, 2, 1)]
    calls.over(two, True)
    assert parts(calls()) == (producer, 3, 1)
    calls.over(one, True)
    assert parts(calls()) == (producer, 4, 3)


def test_a_call_without_an_answer_is_kept_for_who_asks_again():
    """Trial C1: its producer says no more, so nothing that it said lets go of the call."""
    calls = PushCalls()
    one, other = calls(), calls()
    calls.over(one, False)
    calls.over(other, True)
    assert parts(calls())[0] != parts(one)[0]
    calls.over(one, True)


def test_a_call_that_hangs_does_not_hold_up_the_others():
    """Trial C1: they get another producer, and the first one again when it is done."""
    calls = PushCalls()
    hangs = calls()
    for _ in range(3 * SPAN_MAX):
        text = calls()
        _, sequence, below = parts(text)
        assert sequence - below < SPAN_MAX
        calls.over(text, True)
    assert parts(text)[0] != parts(hangs)[0]
    assert len(calls._producers) == 2


def test_many_calls_at_a_time_share_few_producers_for_ever():
    """Trial C1: producers are used again, or the server would keep ever more of them."""
    calls = PushCalls()
    for _ in range(5):
        under_way = [calls() for _ in range(3 * SPAN_MAX)]
        for text in under_way:
            calls.over(text, True)
    assert len(calls._producers) == 3


@pytest.mark.parametrize(
    ("error", "stays"),
    [(QueueFull("full"), True), (OutcomeUnknown("lost"), False), (KeyboardInterrupt(), False)],
)
def test_a_request_is_a_call_while_it_flies(error, stays):
    """Trial C1: however that ends, and only a definite end is one."""
    calls, request = PushCalls(), pb.PushRequest()
    with suppress(BaseException), calls.numbered(request):
        raise error
    assert (parts(calls())[0] == parts(id_of(request))[0]) is stays


def test_a_request_with_an_id_of_its_own_keeps_it():
    """A request id of the caller, or a call of another process."""
    for text in ("mine", f"call:{'0f' * 16}:7:7"):
        request = pb.PushRequest()
        identify(request, text)
        with PushCalls().numbered(request) as numbered:
            assert numbered == text == id_of(request)


def test_what_is_no_call_is_a_request_id():
    for text in ("", "r", "call:", f"call:{'0' * 31}:1:1", f"call:{'0' * 32}:0:0"):
        assert call_of(text) is None


def test_every_call_of_a_batch_is_over_once_known_or_not():
    """Trial C1: answered, split as it was refused, or given up; only the last one must be kept."""
    ended: list[tuple[str, bool]] = []
    numbers = itertools.count(1)
    pushes: PushBatcher[str, int] = PushBatcher(
        BatchLimits(give_up_after=1.0),
        request_ids=lambda: f"r{next(numbers)}",
        over=lambda one, known: ended.append((one, known)),
        chance=lambda: 1.0,
    )
    pushes.add(0.0, "a", b"1", 1)
    pushes.add(0.0, "a", b"2", 2)
    (batch,) = pushes.batches_to_send(0.0)
    assert pushes.handle_refused(batch)
    (half,) = pushes.batches_to_send(0.0)
    pushes.handle_done(half)
    (half,) = pushes.batches_to_send(0.0)
    assert not pushes.handle_unknown(9.0, half)
    assert ended == [("r1", True), ("r3", True), ("r2", False)]
