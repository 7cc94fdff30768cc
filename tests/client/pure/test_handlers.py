"""What a handler takes: read from how it is written, and refused where it is declared."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from jobline import BatchItem, InvalidArgument, Worker, job
from jobline._handlers import payload_hint, result_hint, wants_context
from jobline._job_type import JobType
from jobline._leased import LeasedJob
from jobline._worker.routes import route_of
from jobline.v1 import job_pb2

if TYPE_CHECKING:
    from jobline import Context


@dataclass
class Order:
    number: int


def payload_only(payload):
    return payload


def named(payload, context):
    return context


def short(payload, _ctx):
    return _ctx


def unused(payload, _):
    return payload


def annotated(payload: Order, job_is_here: Context) -> Order:
    return payload


def with_default(payload, retries=3):
    return retries


def with_both(payload, context=None):
    return context


def anything(*arguments, **more):
    return arguments


class Callable:
    def __call__(self, payload: Order, context: Context) -> None:
        return None


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (payload_only, False),
        (named, True),
        (short, True),
        (unused, True),
        (annotated, True),
        (with_default, False),
        (with_both, True),
        (anything, True),
        (Callable(), True),
        (functools.partial(named, context=1), False),
        (functools.wraps(named)(anything), True),
        (print, True),
    ],
)
def test_a_handler_gets_the_context_if_it_says_so(function, expected):
    """Trial B12: by name or annotation; other arguments with a default keep it."""
    assert wants_context(function) is expected


def nothing():
    return None


def two_parts(a, b):
    return a + b


def three(payload, context, more):
    return more


def by_name(payload, *, needed):
    return needed


def by_place(a, b, /):
    return a + b


def and_the_rest(a, b, *rest):
    return rest


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (nothing, r"nothing\(\) takes no payload"),
        (
            two_parts,
            r"two_parts\(\) takes 'b' beside its payload: .* or handler\(payload, context\)",
        ),
        (three, r"three\(\) takes 'more' too"),
        (by_name, "needs 'needed' by its name"),
    ],
)
def test_a_function_that_cannot_take_one_payload_is_refused_where_it_is_declared(function, said):
    """Trial B12: `@job def f(a, b)` used to get the context as `b`; in a sentence that says what to
    do.
    """
    worker = Worker("localhost:1")
    for declare in (job(queue="q", payload=int), worker.handler("q", payload=int)):
        with pytest.raises(InvalidArgument, match=said):
            declare(function)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (by_place, r"by_place\(\) takes 'a' by position alone"),
        (and_the_rest, r"and_the_rest\(\) takes \*rest: the values of a job have names"),
    ],
)
def test_a_function_whose_values_have_no_names_is_refused_where_it_is_declared(function, said):
    """In a sentence that says why."""
    worker = Worker("localhost:1")
    for declare in (job(queue="q"), worker.handler("q")):
        with pytest.raises(InvalidArgument, match=said):
            declare(function)
    with pytest.raises(InvalidArgument, match=said):
        worker.add(JobType(queue="q", name="n"), function)


def test_a_batch_handler_takes_the_items_alone():
    """Trial B12: each item has its context."""
    with pytest.raises(InvalidArgument, match=r"named\(\) takes 'context' too: a batch handler"):
        Worker("localhost:1").batch_handler("q")(named)


def leased(payload: bytes, content_type: str = "") -> LeasedJob:
    options = job_pb2.JobOptions(content_type=content_type)
    return LeasedJob(1, 1, "q", options, payload)


def test_the_annotation_of_the_payload_is_heeded():
    """Trial B12: by `@worker.handler` as by `@job`; `payload=` goes first."""

    def raw(payload: bytes):
        return payload

    def items(items: list[BatchItem[Order]]):
        return items

    def whatever(payload: object):
        return payload

    order = leased(b'{"number":5}', "application/json")
    assert route_of("q", "", annotated).decode(order) == Order(5)
    assert route_of("q", "", Callable()).decode(order) == Order(5)
    assert route_of("q", "", raw).decode(order) == b'{"number":5}'
    assert route_of("q", "", payload_only).decode(order) == {"number": 5}
    assert route_of("q", "", whatever).decode(leased(b"x")) == b"x"
    assert route_of("q", "", annotated, payload=Any).decode(order) == {"number": 5}
    assert route_of("q", "", items, size=9).decode(order) == Order(5)
    assert (payload_hint(anything), result_hint(annotated)) == (Any, Order)


def test_items_of_another_class_are_refused():
    """Trial B12: the payloads stand in the items."""

    def numbers(items: list[int]):
        return items

    with pytest.raises(InvalidArgument, match=r"such as list\[BatchItem\[int\]\]"):
        route_of("q", "", numbers, size=9)


def test_a_type_that_cannot_be_looked_up_says_what_to_do():
    """Trial B12: at the declaration, not at the first job."""

    class Local:
        pass

    def handle(payload: Local):
        return payload

    with pytest.raises(InvalidArgument, match="or give payload="):
        Worker("localhost:1").handler("q")(handle)
    Worker("localhost:1").handler("q", payload=Local)(handle)


def test_a_handler_for_a_queue_that_the_worker_does_not_take_from_is_refused():
    """Trial B12: `queues`, where it is given, names them all."""
    for queues in ({"mail": 2, "sms": 1}, ["mail", "sms"]):
        worker = Worker("localhost:1", queues=queues)
        worker.handler("mail")(payload_only)
        with pytest.raises(InvalidArgument, match=r"'push' would get nothing.*mail, sms alone"):
            worker.handler("push")(payload_only)
    with pytest.raises(InvalidArgument, match=r"\['mail'\]"):
        Worker("localhost:1", queues="mail")
