"""What a handler takes, read from how it is written: `handler(payload)` or `handler(payload,
context)`, and the payload's type from its annotation.

What could not work for any job is refused here, where it is declared.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, get_args, get_origin, get_type_hints

from jobline._context import BatchItem
from jobline.errors import InvalidArgument


class _Unsaid:
    """Marks a type that was not given."""

    def __repr__(self) -> str:
        return "(the annotation)"


UNSAID: Any = _Unsaid()
"""Default of `payload=` and `result=`: the function's annotation."""

_ADVICE = (
    "a handler is handler(payload) or handler(payload, context); a payload of several parts is one "
    "dataclass or one dict"
)


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
            raise InvalidArgument(f"{_name(function)} takes {extra.name!r} too: {_ADVICE}")
    if second.kind is second.VAR_POSITIONAL or _is_context(second):
        return True
    if second.default is not second.empty:
        return False
    raise InvalidArgument(
        f"{_name(function)} takes {second.name!r} beside its payload: {_ADVICE}. If it is the "
        "context, call it `context`, or annotate it with `Context`"
    )


def refuse_more_than_items(function: Callable[..., Any]) -> None:
    """Raises InvalidArgument for a batch handler that cannot be called with its items alone."""
    _, *more = _parameters(function)
    for extra in more:
        if extra.default is extra.empty and extra.kind is not extra.VAR_POSITIONAL:
            raise InvalidArgument(
                f"{_name(function)} takes {extra.name!r} too: a batch handler is handler(items); "
                "each item has its payload and its context"
            )


def payload_hint(function: Callable[..., Any]) -> Any:
    """Returns the annotation of a handler's payload, `Any` without one. Raises InvalidArgument if
    it cannot be resolved.
    """
    first = _parameters(function)[0]
    if first.annotation is first.empty or first.kind is first.VAR_POSITIONAL:
        return Any
    hint = _looked_up(function, first.annotation)
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
            f"{_name(function)} is annotated to take {hint}: a batch handler takes a list of "
            "BatchItem, such as list[BatchItem[int]]"
        )
    return Any


def result_hint(function: Callable[..., Any]) -> Any:
    """Returns the annotation of what a handler returns, `Any` without one. Raises InvalidArgument
    if it cannot be resolved.
    """
    annotation = inspect.signature(function).return_annotation
    return Any if annotation is inspect.Signature.empty else _looked_up(function, annotation)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Returns what a handler takes by position, at least one."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise InvalidArgument(f"{_name(function)} does not say what it takes: {_ADVICE}") from None
    keyword, by_name = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD
    for parameter in parameters:
        if parameter.kind is keyword and parameter.default is parameter.empty:
            raise InvalidArgument(
                f"{_name(function)} needs {parameter.name!r} by its name, which nobody gives: "
                f"{_ADVICE}"
            )
    found = [parameter for parameter in parameters if parameter.kind not in {keyword, by_name}]
    if not found:
        raise InvalidArgument(f"{_name(function)} takes no payload: {_ADVICE}")
    return found


def _is_context(parameter: inspect.Parameter) -> bool:
    """Returns whether a parameter is the context, by its name or by its unresolved annotation."""
    if parameter.annotation is not parameter.empty:
        annotation = parameter.annotation
        text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
        if text.rpartition(".")[2] == "Context":
            return True
    name = parameter.name.strip("_").lower()
    return name in {"", "ctx"} or name.endswith("context")


def _looked_up(function: Callable[..., Any], annotation: Any) -> Any:
    """Returns an annotation as a type: that one alone, so that those of other arguments may be
    names that only type checkers know.
    """
    target = inspect.unwrap(getattr(function, "func", function))
    if not inspect.isroutine(target):
        target = type(target).__call__
    holder = SimpleNamespace(__annotations__={"it": annotation})
    names = getattr(target, "__globals__", {})
    try:
        return get_type_hints(holder, globalns=names, include_extras=True)["it"]
    except NameError as error:
        raise InvalidArgument(
            f"the types of {_name(function)} cannot be looked up ({error}): declare them at the "
            "top of a module and before it, or give payload= and result="
        ) from error


def _name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{name.rpartition('<locals>.')[2]}()"


def refuse_bare(queue: Any, decorator: str) -> None:
    """Raises InvalidArgument if a decorator got a function, or anything else that is no name of a
    queue: `@worker.handler` alone would silently declare nothing.
    """
    if not isinstance(queue, str):
        given = f"not {_name(queue) if callable(queue) else repr(queue)}"
        raise InvalidArgument(
            f'queue: {decorator} takes the name of a queue, {given}: {decorator}("mail")'
        )
