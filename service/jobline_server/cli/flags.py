"""Settings as flags: each field of `config.Settings` becomes `--its-name`, with its description.

A flag that is not given stays None, so that environment, file and default decide; what a value may
be is checked by `config`, in one place for all sources.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from jobline_server.config import PREFIX, Settings

_SIZE_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def with_settings(
    function: Callable[..., None], *, fixed: Mapping[str, Any] | None = None
) -> Callable[..., None]:
    """A command that takes every setting as a flag beside the function's own parameters, and calls
    it with `given`: those flags that were given, by field name. `fixed` settings have no flag.
    """
    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(function, eval_str=True).parameters.values()
        if parameter.name != "given"
    ]
    fields = {
        name: info for name, info in Settings.model_fields.items() if name not in (fixed or {})
    }
    flags = [_flag(name, info) for name, info in fields.items()]

    def command(**values: Any) -> None:
        given = {name: values.pop(name) for name in fields}
        function(
            given={name: value for name, value in given.items() if value is not None}, **values
        )

    command.__signature__ = inspect.Signature([*own, *flags])  # type: ignore[attr-defined]  # read by inspect
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in [*own, *flags]}
    command.__doc__ = function.__doc__
    return command


def shown_default(info: FieldInfo) -> str:
    """A field's default as a person would type it."""
    value = info.default
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if type(value) is not int and isinstance(value, int):  # a size in bytes
        for size, unit in _SIZE_UNITS:
            if value >= size and value % size == 0:
                return f"{value // size} {unit}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def choices(info: FieldInfo) -> tuple[str, ...]:
    """The words a field may have, if it may have only some."""
    return get_args(info.annotation) if get_origin(info.annotation) is Literal else ()


def _flag(name: str, info: FieldInfo) -> inspect.Parameter:
    flag = "--" + name.replace("_", "-")
    is_switch = info.annotation is bool
    option = typer.Option(
        f"{flag}/--no-{flag[2:]}" if is_switch else flag,
        help=_help(info),
        metavar="" if is_switch else _metavar(name, info),
        show_default=False,
        rich_help_panel="Settings, also from the environment as JOBLINE_… or a TOML file",
    )
    kind: Any = bool if is_switch else Path if info.annotation in {Path, Path | None} else str
    annotation = Annotated[kind | None, option]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def _help(info: FieldInfo) -> str:
    words = f" One of {', '.join(choices(info))}." if choices(info) else ""
    return f"{info.description}{words} [default: {shown_default(info)}]"


def _metavar(name: str, info: FieldInfo) -> str:
    if choices(info):
        return "WORD"
    if name in {"listen", "http"}:
        return "HOST:PORT"
    if name.endswith("_bytes"):
        return "SIZE"
    if name.endswith("_seconds"):
        return "SECONDS"
    return "PATH" if info.annotation in {Path, Path | None} else "N"


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return f"{PREFIX}{name}".upper()
