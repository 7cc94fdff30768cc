"""Makes flags of settings: each field of `config.Settings` becomes `--its-name`.

A flag that is not given is None, so environment, file and default decide. `config` checks values,
for all sources.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo
from typer.core import TyperCommand

from jobline_server.cli.described import flag_of, help_of, in_order, is_switch, metavar_of
from jobline_server.config import Settings


class PlainHelp(TyperCommand):
    """A command with plain help: a table in a box would cut long names at 80 columns."""

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values | {"rich_markup_mode": None})


def with_settings(
    function: Callable[..., None],
    *,
    fixed: Mapping[str, Any] | None = None,
    defaults: Mapping[str, str] | None = None,
) -> Callable[..., None]:
    """Returns a command that takes every setting as a flag, beside the parameters of `function`,
    and calls it with `given`: the flags that were given, by field name. `fixed` settings have no
    flag. `defaults` replace those of the settings in `--help`.
    """
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(function, eval_str=True).parameters.values()
        if parameter.name != "given"
    ]
    fields = {
        name: info
        for name, info in in_order(Settings.model_fields).items()
        if name not in (fixed or {})
    }
    flags = [_flag(name, info, (defaults or {}).get(name, "")) for name, info in fields.items()]

    def command(**values: Any) -> None:
        given = {name: values.pop(name) for name in fields}
        function(
            given={name: value for name, value in given.items() if value is not None}, **values
        )

    command.__signature__ = inspect.Signature([*parameters, *flags])  # type: ignore[attr-defined]  # read by inspect
    command.__annotations__ = {
        parameter.name: parameter.annotation for parameter in [*parameters, *flags]
    }
    command.__doc__ = function.__doc__
    return command


def _flag(name: str, info: FieldInfo, default: str) -> inspect.Parameter:
    flag = flag_of(name)
    option = typer.Option(
        f"{flag}/--no-{flag[2:]}" if is_switch(info) else flag,
        help=help_of(info, default),
        metavar="" if is_switch(info) else metavar_of(name, info),
        show_default=False,
    )
    # Paths are text here: an empty `Path` would be the current directory.
    kind: Any = bool if is_switch(info) else str
    annotation = Annotated[kind | None, option]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )
