"""Which of the two forms a handler has: one payload, or an object of several values."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import pytest

from jobline._parameters import parameters_of

if TYPE_CHECKING:
    from jobline import Context


def one(payload):
    return payload


def with_context(payload, context):
    return payload


def bound(payload, number=1):
    return number


def wrapper(*arguments, **more):
    return arguments


def two(a, b):
    return a, b


def defaulted(a: int, b: int = 2):
    return a, b


def behind_a_star(*, a):
    return a


def context_alone(context: Context):
    return context


def context_first(ctx, a, b):
    return ctx, a, b


def likely_name(a: str, user_context: dict[str, str], context: Context):
    return a, user_context, context


def own(a: int, _cache: dict[str, int] = {}):  # noqa: B006  # what Python people do
    return a


@functools.wraps(two)
def wraps_two(*arguments, **more):
    return two(*arguments, **more)


@pytest.mark.parametrize(
    ("function", "names", "context"),
    [
        (one, None, ""),
        (with_context, None, ""),
        (bound, None, ""),
        (wrapper, None, ""),
        (print, None, ""),
        (own, None, ""),
        (lambda payload, number=1: (payload, number), None, ""),
        (functools.partial(defaulted, b=1), None, ""),
        (functools.partial(two, 1), None, ""),
        (two, ("a", "b"), ""),
        (defaulted, ("a", "b"), ""),
        (behind_a_star, ("a",), ""),
        (context_alone, (), "context"),
        (context_first, ("a", "b"), "ctx"),
        (likely_name, ("a", "user_context"), "context"),
        (wraps_two, ("a", "b"), ""),
    ],
)
def test_the_form_of_a_function_is_read_from_its_parameters(function, names, context):
    """One payload, as before, or an object; a default alone makes no value of a job."""
    parameters = parameters_of(function)
    if names is None:
        assert parameters is None
    else:
        assert parameters is not None
        assert (parameters.names, parameters.context) == (names, context)
