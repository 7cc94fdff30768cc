"""Functions of several parameters as handlers: `resize(path: str, width: int = 100)`.

The payload of such a job is a JSON object with a value for each parameter, by its name. It is
checked by the annotations before it is sent, in the way the worker will read it, so what can be
pushed can be read. What is not given is not sent: the worker's own default applies.

    parameters = parameters_of(resize)
    data = parameters.encode(parameters.bind(("a.png",), {"width": 64}))
    resize(**parameters.decode(data))

`parameters_of` also decides which of the two forms of a handler a function has; None is the other
one, `handler(payload)` or `handler(payload, context)`.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn, NotRequired, TypedDict

from jobline import _codec as codec
from jobline._base_errors import CodecError, ErrorFacts, InvalidArgument
from jobline._hints import is_context, looked_up, name_of
from jobline._typed_json import OwnReader, reader_of

_Parameter = inspect.Parameter
_SCALARS = frozenset({str, int, bool})


class Parameters(OwnReader):
    """The parameters of a function that are values of a job.

    `names`: in their order; `by_place`: those of them that may be given by position. `context`: the
    parameter that gets the context, "" without one. `takes_more`: `**more` takes other names.
    """

    def __init__(self, function: Callable[..., Any], form: _Form, signature: Iterable[str]) -> None:
        self._function = function
        # What the function has beside its values: no job may set it, not even by `**more`.
        self._own = frozenset(signature) - {parameter.name for parameter in form.values}
        self._parameters = {parameter.name: parameter for parameter in form.values}
        self.names = tuple(self._parameters)
        self.by_place = tuple(
            parameter.name for parameter in form.values if parameter.kind is not _KEYWORD
        )
        self.context = form.context.name if form.context else ""
        self.takes_more = form.more is not None
        self._more = form.more
        self.title: str = getattr(function, "__name__", type(function).__name__)

    def __repr__(self) -> str:
        return f"<Parameters {self.title}({', '.join(self.names)})>"

    # ------------------------------------------------------------------ types

    @cached_property
    def hints(self) -> dict[str, Any]:
        """The type of each parameter. Raises InvalidArgument if one cannot be looked up."""
        return {name: self._hint(parameter) for name, parameter in self._parameters.items()}

    @cached_property
    def _more_hint(self) -> Any:
        return Any if self._more is None else self._hint(self._more)

    def _hint(self, parameter: inspect.Parameter) -> Any:
        if parameter.annotation is parameter.empty:
            return Any
        hint = looked_up(self._function, parameter.annotation)
        return Any if hint is object else hint

    @property
    def required(self) -> tuple[str, ...]:
        """The parameters without a default."""
        return tuple(name for name, each in self._parameters.items() if each.default is each.empty)

    @cached_property
    def record(self) -> Any:
        """The payload as a TypedDict, for schemas."""
        required = self.required
        fields = {
            name: hint if name in required else NotRequired[hint]
            for name, hint in self.hints.items()
        }
        # Made at run time: the keys are known from the function alone.
        return TypedDict(self.title, fields)  # type: ignore[operator]

    # ------------------------------------------------------------------ pushing

    def may_be_more(self, name: str) -> bool:
        """Returns whether `**more` takes a name that is no parameter."""
        return self.takes_more and name not in self._own

    def bind(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Returns values by name: those given by position as a call of the function would take
        them, without the context. Raises TypeError for too many, or for one that is given twice.
        """
        if len(arguments) > len(self.by_place):
            taken = f"takes {len(self.by_place)} values by position"
            raise TypeError(f"{self.title}() {taken}, and {len(arguments)} were given")
        values = dict(zip(self.by_place, arguments, strict=False))
        for name in keywords:
            if name in values:
                raise TypeError(f"{self.title}() got two values for {name!r}")
        return {**values, **keywords}

    def refuse_unknown(self, name: str, others: Sequence[str] = ()) -> NoReturn:
        """Raises the TypeError for a keyword that is neither a parameter nor one of `others`."""
        close = difflib.get_close_matches(name, [*self.names, *others], n=1)
        taken = ", ".join(self.names) or "no values"
        advice = f"did you mean {close[0]!r}?" if close else f"it takes {taken}"
        raise TypeError(f"{self.title}() got an unexpected keyword argument {name!r}: {advice}")

    def encode(self, values: object) -> bytes:
        """Returns the JSON of values by name. Raises CodecError that names the parameter, and what
        was expected, for a wrong or missing value; TypeError for a name that is no parameter.
        """
        if not isinstance(values, Mapping):
            kind = type(values).__name__
            raise CodecError(
                f"{self.title}() takes its values by name, as a mapping, not as {kind}"
            )
        parts = []
        for name, value in values.items():
            if name not in self._parameters and not self.may_be_more(name):
                self.refuse_unknown(name)
            parts.append(json.dumps(name).encode() + b":" + self._encoded(name, value))
        for name in self.required:
            if name not in values:
                self._refuse(name, f"is missing: {_said(self.hints[name])} is expected")
        return b"{" + b",".join(parts) + b"}"

    def _encoded(self, name: str, value: Any) -> bytes:
        hint = self.hints[name] if name in self._parameters else self._more_hint
        try:
            data = codec.encode_json(value)
            # By their class alone the most frequent ones are as the worker needs them.
            if not (hint is type(value) and hint in _SCALARS):
                reader_of(hint)(codec.decode_json(data))
        except CodecError as error:
            self._refuse(name, error.message)
        return data

    def _refuse(self, name: str, why: str) -> NoReturn:
        facts = ErrorFacts(fields={name: why})
        raise CodecError(f"{self.title}(): {name}: {why}", facts) from None

    # ------------------------------------------------------------------ working

    def decode(self, data: bytes) -> dict[str, Any]:
        """Returns the values of a payload by name, each as its annotation says; an empty payload
        has none. Names that are no parameters are ignored, unless `**more` takes them. Raises
        CodecError that names the parameter.
        """
        return self.read(codec.decode_json(data) if data else {})

    def read(self, value: Any) -> dict[str, Any]:
        """Returns the values of a JSON object by name, as `decode` does."""
        if not isinstance(value, dict):
            needed = ", ".join(self.names) or "nothing in it"
            kind = type(value).__name__
            raise CodecError(f"{self.title}() takes an object with {needed}, found {kind}")
        found = {
            name: self._read(name, hint, value[name])
            for name, hint in self.hints.items()
            if name in value
        }
        for name in self.required:
            if name not in found:
                self._refuse(name, f"is missing: {_said(self.hints[name])} is expected")
        if self.takes_more:
            others = [name for name in value if name not in found and self.may_be_more(name)]
            found.update((name, self._read(name, self._more_hint, value[name])) for name in others)
        return found

    def _read(self, name: str, hint: Any, value: Any) -> Any:
        try:
            return reader_of(hint)(value)
        except CodecError as error:
            self._refuse(name, error.message)

    def called(self, function: Callable[..., Any]) -> Callable[[dict[str, Any], Any], Any]:
        """Returns a function of (values, context) that calls `function` with each by its name."""
        context_name = self.context

        @functools.wraps(function)
        def call(values: dict[str, Any], context: Any) -> Any:
            if context_name:
                values[context_name] = context
            return function(**values)

        return call


def _said(hint: Any) -> str:
    return "a value" if hint is Any else getattr(hint, "__name__", str(hint))


# ---------------------------------------------------------------------- which form a function has

_KEYWORD = _Parameter.KEYWORD_ONLY
_REST = _Parameter.VAR_POSITIONAL
_MORE = _Parameter.VAR_KEYWORD


class _Form:
    """The parameters of a function, sorted."""

    def __init__(self, parameters: Sequence[inspect.Parameter]) -> None:
        self.more = next((each for each in parameters if each.kind is _MORE), None)
        self.rest = next((each for each in parameters if each.kind is _REST), None)
        named = [each for each in parameters if each.kind not in {_MORE, _REST}]
        self.context = _context_among(named)
        self.values = [each for each in named if each is not self.context and not _is_own(each)]

    @property
    def is_by_name(self) -> bool:
        """Whether the payload is an object with the parameters, and not the first of them."""
        if self.rest is not None and len(self.values) < 2:
            return False  # a wrapper that passes on what it gets
        first, *others = self.values or (None,)
        if first is None or first.kind is _KEYWORD:
            return first is None or _counts(first) or any(map(_counts, others))
        return any(map(_counts, others))


def _counts(parameter: inspect.Parameter) -> bool:
    """Returns whether a further parameter makes the payload an object. `lambda payload, i=i: …`
    keeps what it was given where it was made.
    """
    return parameter.default is parameter.empty or parameter.annotation is not parameter.empty


def _is_own(parameter: inspect.Parameter) -> bool:
    """Returns whether a parameter is not for jobs: `_cache={}`."""
    return parameter.name.startswith("_") and parameter.default is not parameter.empty


def _context_among(named: Sequence[inspect.Parameter]) -> inspect.Parameter | None:
    """Returns the parameter for the context: by its annotation, else by its name, which the first
    one may have only if its annotation does not speak against it and others are there.
    """
    found = [each for each in named if is_context(each, by_name=False)]
    found = found or [each for each in named[1:] if is_context(each, by_name=True)]
    if not found and len(named) > 1 and named[0].name in {"context", "ctx"}:
        found = [named[0]]
    return found[0] if found else None


def parameters_of(function: Callable[..., Any]) -> Parameters | None:
    """Returns the parameters of a function whose payload is an object with a value for each; None
    for `handler(payload)` and `handler(payload, context)`. Raises InvalidArgument for one whose
    values cannot be given by name.

    A function has the first form if it has two parameters or more beside the context, of which
    those with a default count where they are annotated, or parameters behind `*`, or none at all.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    bound = function.keywords if isinstance(function, functools.partial) else {}
    form = _Form([each for each in parameters if each.name not in bound])
    if not form.is_by_name:
        return None
    if form.rest is not None:
        raise InvalidArgument(
            f"{name_of(function)} takes *{form.rest.name}: the values of a job have names"
        )
    for each in form.values:
        if each.kind is each.POSITIONAL_ONLY:
            raise InvalidArgument(
                f"{name_of(function)} takes {each.name!r} by position alone, before /: the values "
                "of a job are given by name"
            )
    return Parameters(function, form, [each.name for each in parameters])
