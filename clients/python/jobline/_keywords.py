"""Keywords that a method takes as `**more: Unpack[SomeTypedDict]`: type checkers and editors know
them from the TypedDict; this file shows them to `help()`, and refuses unknown ones by name.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def spelled_out(*kinds: type) -> Callable[[F], F]:
    """Shows the keys of these TypedDicts in the signature of a function, in place of its last
    parameter, `**more`.
    """
    hints = {name: hint for kind in kinds for name, hint in kind.__annotations__.items()}

    def show(function: F) -> F:
        signature = inspect.signature(function)
        *own, _ = signature.parameters.values()
        shown = [_keyword(name, hint) for name, hint in hints.items()]
        changed = signature.replace(parameters=[*own, *shown])
        function.__signature__ = changed  # type: ignore[attr-defined]  # read by inspect
        return function

    return show


class _Unset:
    """The default of a keyword that may be left out and takes no None."""

    def __repr__(self) -> str:
        return "…"


_UNSET = _Unset()


def _keyword(name: str, hint: Any) -> inspect.Parameter:
    text = getattr(hint, "__forward_arg__", hint)
    default = None if "None" in str(text) else _UNSET
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=text)


# Keywords beside those of options: an unknown keyword may have meant one of these.
_OF_MANY = ("name", "options", "delay", "run_at", "ack_level")
_OF_ONE = ("job_key", "unique_key")
_MANY = ("push_many", "push_payloads")
_BESIDE_OPTIONS = {
    "push": ("job_key", "unique_key", *_OF_MANY),
    "push_many": (*_OF_MANY, "atomic", "spread", "request_id"),
    "push_payloads": ("groups", "unique_keys", *_OF_MANY),
    "NewJob": ("job_key", "unique_key", "name", "options", "delay", "run_at"),
    "job": ("name", "options", "payload", "result"),
}


def refuse_unknown(given: Mapping[str, Any], known: Collection[str], function: str) -> None:
    """Raises the TypeError that Python raises for a keyword that `function` does not take."""
    for name in given:
        if name not in known:
            taken = [*_BESIDE_OPTIONS.get(function, ()), *known]
            close = [each for each in taken if each.startswith(f"{name}_")]
            close = close or difflib.get_close_matches(name, taken, n=1)
            advice = f": did you mean {close[0]!r}?" if close else f": it takes {', '.join(taken)}"
            if name in _OF_ONE and function in _MANY:
                advice = f": each job has its own; give push_many() a NewJob(…, {name}=…) for each"
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{advice}")
