"""Annotations of handlers: looked up as types, and which parameter is the context."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, get_type_hints

from jobline._base_errors import InvalidArgument


def is_context(parameter: inspect.Parameter, *, by_name: bool) -> bool:
    """Returns whether a parameter is the context: by its unresolved annotation or, if asked, by its
    name.
    """
    annotation = parameter.annotation
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    last = text.partition("|")[0].strip().rpartition(".")[2]
    if last == "Context" or not by_name:
        return last == "Context"
    name = parameter.name.strip("_").lower()
    return name in {"", "ctx"} or name.endswith("context")


def looked_up(function: Callable[..., Any], annotation: Any) -> Any:
    """Returns an annotation as a type: that one alone, so that those of other arguments may be
    names that only type checkers know. Raises InvalidArgument if it cannot be resolved.
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
            f"the types of {name_of(function)} cannot be looked up ({error}): declare them at the "
            "top of a module and before it, or give payload= and result="
        ) from error


def name_of(function: Callable[..., Any]) -> str:
    """Returns the name of a function for a message: `resize()`."""
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{name.rpartition('<locals>.')[2]}()"
