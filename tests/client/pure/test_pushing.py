"""Pushes into messages and answers back; options and times as the protocol wants them."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobline import (
    AckLevel,
    AlreadyExists,
    FailedPrecondition,
    IdempotencyMismatch,
    Internal,
    InvalidArgument,
    JobOptions,
    NewJob,
    OutcomeUnknown,
    Pushed,
    PushOutcome,
    UniqueKeyHeld,
)
from jobline._push.answers import answers_of_batch, lot_of, pushed_of
from jobline._push.batch import Batch, Own, Pushes
from jobline._push.batching import BatchLimits, PushBatcher
from jobline._push.messages import (
    BatchKey,
    batch_key_of,
    built,
    request_of_batch,
    request_of_jobs,
    request_of_payloads,
)
from jobline._push.refusals import handle_error
from jobline.errors import ErrorFacts, QueueFull, TooLarge, Unavailable
from jobline.v1 import job_pb2
from jobline.v1 import job_service_pb2 as pb

CREATED, FSYNCED = PushOutcome.CREATED, AckLevel.FSYNCED


def batch_key(**said):
    plain: Any = dict.fromkeys(BatchKey._fields) | {"queue": "q", "is_json": False}
    return BatchKey(**(plain | said))


def batch(of, *payloads, job_keys=(), headers=(), groups=(), unique_keys=()):
    count = len(payloads)
    columns = (
        list(job_keys) or [""] * count,
        list(unique_keys) or [""] * count,
        list(headers) or [None] * count,
        list(groups) or [""] * count,
    )
    own = [Own(*each) for each in zip(*columns, strict=True)]
    pushes: Pushes[int] = Pushes(list(payloads), own, list(range(count)))
    request_id = "" if pushes.all_have_keys() else "r1"
    return Batch(of, pushes, pushes.payload_bytes(), 0.0, request_id)


def many(jobs, *, request_id: Any = None, atomic=True, **said: Any):
    how: Any = said
    return request_of_jobs(batch_key_of("q", how), jobs, atomic=atomic, request_id=request_id)


# ---------------------------------------------------------------------- one at a time


def test_plain_pushes_travel_as_one_lot():
    """Payloads in a column, what they share once, one request id for the call."""
    shared = batch_key(
        name="n",
        options=JobOptions(priority=3),
        is_json=True,
        delay=1.5,
        ack_level=AckLevel.BUFFERED,
    )
    request = built(batch(shared, b"1", b"2"))
    assert list(request.payloads) == [b"1", b"2"]
    assert (request.request_id, request.options.name, request.options.priority) == ("r1", "n", 3)
    assert request.options.content_type == "application/json"
    assert request.delay.ToMilliseconds() == 1_500
    assert request.ack_level == job_pb2.ACK_LEVEL_BUFFERED


def test_one_job_is_the_same_call_however_it_is_pushed():
    """Trial C1: a push that was lost is repeated by `push_many` or `push_payloads` under its call,
    and the server compares the requests.
    """
    of = batch_key(name="n", ack_level=AckLevel.BUFFERED)
    pushed = built(batch(of, b"1"))
    assert many([b"1"], request_id="r1", name="n", ack_level="buffered") == pushed
    assert request_of_payloads(of, [b"1"], "r1") == pushed


def test_pushes_with_keys_are_refused_one_by_one():
    """Not atomic, because they are different callers', and no request id, because keys say it."""
    request = built(batch(batch_key(), b"1", b"2", job_keys=["a", "b"]))
    assert (list(request.payloads), list(request.job_keys)) == ([b"1", b"2"], ["a", "b"])
    assert (request.HasField("atomic"), request.atomic, request.request_id) == (True, False, "")


@pytest.mark.parametrize(
    "said",
    [
        {"delay": 1, "run_at": datetime.now(UTC)},
        {"delay": math.nan},
        {"run_at": datetime(2025, 1, 1)},  # noqa: DTZ001  # that is the mistake
        {"options": JobOptions(priority=2**40)},
        {"queue": 5},
    ],
)
def test_what_does_not_fit_into_a_message_is_the_callers_mistake(said):
    """It is told to the caller, whatever library noticed it."""
    with pytest.raises(InvalidArgument):
        built(batch(batch_key(**said), b"1"))


# ---------------------------------------------------------------------- many at a time


@pytest.mark.parametrize("said", [{"options": JobOptions(priority=2**40)}, {"delay": math.nan}])
def test_what_does_not_fit_is_the_callers_mistake_for_many_too(said):
    """Whichever way they are pushed."""
    with pytest.raises(InvalidArgument):
        many([b"1"], **said)
    with pytest.raises(InvalidArgument):
        request_of_payloads(batch_key(**said), [b"1"], "r")
    text: Any = ["text"]
    with pytest.raises(InvalidArgument, match="payloads: must be a list of bytes"):
        request_of_payloads(batch_key(), text, "r")
    with pytest.raises(InvalidArgument, match="payloads: must be a list, not b'1'"):
        request_of_payloads(batch_key(), b"1", "r")  # type: ignore[arg-type]  # a slip


def test_many_payloads_of_one_kind_are_a_lot():
    """Nothing of their own: the server stores them once."""
    request = many([{"a": 1}, "b", 3], name="n")
    assert list(request.payloads) == [b'{"a":1}', b'"b"', b"3"]
    assert request.options.content_type == "application/json"
    assert not request.jobs


def test_bytes_and_json_together_are_rows():
    """Each says what it is."""
    request = many([b"raw", {"a": 1}])
    assert [job.options.content_type for job in request.jobs] == ["", "application/json"]
    assert not request.HasField("options")


def test_what_a_job_says_of_its_own_travels_with_it():
    """Options override the shared ones at the server, field by field."""
    request = many(
        [NewJob(b"1", options=JobOptions(priority=5), delay=timedelta(minutes=1)), b"2"],
        options=JobOptions(max_attempts=9),
        atomic=False,
    )
    first, second = request.jobs
    assert (first.options.priority, first.delay.seconds) == (5, 60)
    assert not second.HasField("options")
    assert (request.options.max_attempts, request.atomic) == (9, False)


def test_a_request_id_is_not_allowed_beside_keys_but_a_call_is():
    """Trial C1: the text of a call stands where a request id stands."""
    request = many([NewJob(b"1", job_key="mine"), b"2"], request_id=f"call:{'5a' * 16}:9:3")
    assert list(request.job_keys) == ["mine", ""]
    producer = request.producer
    assert (producer.id, producer.sequence, producer.answered_below) == (b"Z" * 16, 9, 3)
    with pytest.raises(InvalidArgument, match="not both"):
        many([NewJob(b"1", job_key="mine")], request_id="r")


# ---------------------------------------------------------------------- answers


def answer(count, first_id=100, **exceptions):
    rows = [
        pb.PushException(
            index=int(index[1:]),
            outcome=pb.PushOutcome.ValueType(outcome),
            id=said if isinstance(said, int) else 0,
            reason=said if isinstance(said, str) else "",
        )
        for index, (outcome, said) in exceptions.items()
    ]
    return pb.PushResponse(
        first_id=first_id, count=count, exceptions=rows, ack_level=job_pb2.ACK_LEVEL_FSYNCED
    )


def test_ids_follow_the_order_of_the_push():
    """Those that were created have consecutive ids; the others say which they stand for."""
    pushed = pushed_of(answer(2, i1=(PushOutcome.DUPLICATE, 7)), 3)
    assert pushed == [
        Pushed(100, CREATED, FSYNCED),
        Pushed(7, PushOutcome.DUPLICATE, FSYNCED),
        Pushed(101, CREATED, FSYNCED),
    ]
    assert [entry.created for entry in pushed] == [True, False, True]
    assert pushed[1].duplicate


def test_an_answer_that_does_not_fit_is_not_believed():
    """And not asked for again."""
    for strange in (answer(1), answer(1, i5=(PushOutcome.DUPLICATE, 7))):
        with pytest.raises(Internal) as caught:
            pushed_of(strange, 2)
    assert not caught.value.retryable


def test_a_key_that_does_not_match_is_its_own_callers_error():
    """The others in the batch are stored."""
    keyed = batch(batch_key(), b"1", b"2", job_keys=["a", "b"])
    refused = answer(1, i1=(PushOutcome.REFUSED, "IDEMPOTENCY_MISMATCH"))
    first, second = answers_of_batch(refused, keyed)
    assert isinstance(first, Pushed)
    assert isinstance(second, IdempotencyMismatch)
    assert second.reason == "IDEMPOTENCY_MISMATCH"
    assert "'b'" in second.message


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("IDEMPOTENCY_MISMATCH", IdempotencyMismatch),
        ("UNIQUE_KEY_HELD", UniqueKeyHeld),
        ("JOB_AWAITED", FailedPrecondition),
        ("OF_A_LATER_SERVER", AlreadyExists),
    ],
)
def test_a_refusal_is_for_the_reason_that_the_server_gives(reason, kind):
    """Whichever keys the job has, and whatever its queue says of them."""
    keyed = batch(batch_key(), b"1", job_keys=["a"], unique_keys=["u"])
    (refused,) = answers_of_batch(answer(0, i0=(PushOutcome.REFUSED, reason)), keyed)
    assert isinstance(refused, kind)
    assert (refused.reason, refused.definite, refused.retryable) == (reason, True, False)
    (told,) = pushed_of(answer(0, i0=(PushOutcome.REFUSED, reason)), 1)
    assert (told.outcome, told.reason) == (PushOutcome.REFUSED, reason)


def test_a_lot_knows_its_ids():
    """They are consecutive."""
    assert list(lot_of(answer(3)).ids) == [100, 101, 102]


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("error", "done", "left"),
    [
        (QueueFull("full"), True, 0),
        (Unavailable("gone"), False, 2),
        (InvalidArgument("no", ErrorFacts(fields={"queue": "bad"})), True, 0),
        (InvalidArgument("no", ErrorFacts(fields={"payloads[1]": "bad"})), False, 2),
        (TooLarge("no"), False, 2),
        (Internal("bug", ErrorFacts(reason="BUG")), True, 0),
        (OutcomeUnknown("lost"), False, 2),
    ],
)
def test_what_a_batch_does_after_an_error(error, done, left):
    """Refused for all, again, or split to find the one."""
    batcher: PushBatcher[BatchKey, str] = PushBatcher(
        BatchLimits(),
        request_ids=lambda: "r",
        over=lambda _id, _known: None,
        chance=lambda: 0.5,
    )
    batcher.add(0.0, batch_key(), b"1", "w1")
    batcher.add(0.0, batch_key(), b"2", "w2")
    (numbered,) = batcher.batches_to_send(0.0)
    assert handle_error(batcher, 0.0, numbered, error) is done
    assert batcher.jobs == left


def test_pushes_of_different_groups_share_a_call():
    """Each has its group in a column; a push with a key alone has it in its row."""
    request = request_of_batch(batch(batch_key(), b"a", b"b", groups=["g", ""]))
    assert list(request.groups) == ["g", ""]
    request = request_of_batch(batch(batch_key(), b"a", job_keys=["k"], groups=["g"]))
    assert request.jobs[0].options.group == "g"
    assert not request_of_batch(batch(batch_key(), b"a")).groups
