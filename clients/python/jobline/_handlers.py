"""What a handler of one payload takes, read from how it is written: `handler(payload)` or
`handler(payload, context)`, and the payload's type from its annotation. `_parameters` has the other
form.

What could not work for any job is refused here, where it is declared.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_args, get_origin

from jobline._context import BatchItem
from jobline._hints import is_context, looked_up, name_of
from jobline.errors import InvalidArgument


class _Unsaid:
    """Marks a type that was not given."""

    def __repr__(self) -> str:
        return "(the annotation)"

    def __reduce__(self) -> str:
        """Pickled by its name: it is known by its identity, in other processes too."""
        return "UNSAID"


UNSAID: Any = _Unsaid()
"""Default of `payload=` and `result=`: the function's annotation."""

_ADVICE = "a handler of one payload is handler(payload) or handler(payload, context)"


def wants_context(function: Callable[..., Any]) -> bool:
    """Returns whether a handler takes the context beside the payload. Raises InvalidArgument for a
    function that cannot be called with one of both.
    """
    first, *more = _parameters(function)
    if first.kind is first.VAR_POSITIONAL:
        return True  # a wrapper that passes on what it gets
    if not more:
        return False
    second, *more = more
    for extra in more:
        if extra.default is extra.empty and extra.kind is not extra.VAR_POSITIONAL:
            raise InvalidArgument(f"{name_of(function)} takes {extra.name!r} too: {_ADVICE}")
    if second.kind is second.VAR_POSITIONAL or is_context(second, by_name=True):
        return True
    if second.default is not second.empty:
        return False
    raise InvalidArgument(
        f"{name_of(function)} takes {second.name!r} beside its payload: {_ADVICE}. If it is the "
        "context, call it `context`, or annotate it with `Context`"
    )


def takes_one(function: Callable[..., Any], payload: Any) -> bool:
    """Returns whether a handler of several parameters takes a payload of this type as its first:
    the others have defaults.
    """
    try:
        wants_context(function)
        return payload is not Any and payload_hint(function) == payload
    except InvalidArgument:
        return False


def refuse_more_than_items(function: Callable[..., Any]) -> None:
    """Raises InvalidArgument for a batch handler that cannot be called with its items alone."""
    _, *more = _parameters(function)
    for extra in more:
        if extra.default is extra.empty and extra.kind is not extra.VAR_POSITIONAL:
            raise InvalidArgument(
                f"{name_of(function)} takes {extra.name!r} too: a batch handler is handler(items); "
                "each item has its payload and its context"
            )


def payload_hint(function: Callable[..., Any]) -> Any:
    """Returns the annotation of a handler's payload, `Any` without one. Raises InvalidArgument if
    it cannot be resolved.
    """
    first = _parameters(function)[0]
    if first.annotation is first.empty or first.kind is first.VAR_POSITIONAL:
        return Any
    hint = looked_up(function, first.annotation)
    return Any if hint is object else hint


def items_hint(function: Callable[..., Any]) -> Any:
    """Returns the annotation of the payloads of a batch handler's items, such as `int` for
    `list[BatchItem[int]]`; `Any` without one. Raises InvalidArgument for items of another class.
    """
    hint = payload_hint(function)
    entry = (get_args(hint) or (Any,))[0]
    kind = get_origin(entry) or entry
    if kind is BatchItem:
        return (get_args(entry) or (Any,))[0]
    if hint is not Any and kind is not Any:
        raise InvalidArgument(
            f"{name_of(function)} is annotated to take {hint}: a batch handler takes a list of "
            "BatchItem, such as list[BatchItem[int]]"
        )
    return Any


def result_hint(function: Callable[..., Any]) -> Any:
    """Returns the annotation of what a handler returns, `Any` without one. Raises InvalidArgument
    if it cannot be resolved.
    """
    annotation = inspect.signature(function).return_annotation
    return Any if annotation is inspect.Signature.empty else looked_up(function, annotation)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Returns what a handler takes by position, at least one."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"{name_of(function)} does not say what it takes: {_ADVICE}"
        ) from None
    keyword, by_name = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD
    for parameter in parameters:
        if parameter.kind is keyword and parameter.default is parameter.empty:
            raise InvalidArgument(
                f"{name_of(function)} needs {parameter.name!r} by its name, which nobody gives: "
                f"{_ADVICE}"
            )
    found = [parameter for parameter in parameters if parameter.kind not in {keyword, by_name}]
    if not found:
        raise InvalidArgument(f"{name_of(function)} takes no payload: {_ADVICE}")
    return found


def refuse_bare(queue: Any, decorator: str) -> None:
    """Raises InvalidArgument if a decorator got a function, or anything else that is no name of a
    queue: `@worker.handler` alone would silently declare nothing.
    """
    if not isinstance(queue, str):
        given = f"not {name_of(queue) if callable(queue) else repr(queue)}"
        raise InvalidArgument(
            f'queue: {decorator} takes the name of a queue, {given}: {decorator}("mail")'
        )
