"""Settings as a person reads them: defaults, words to choose from, the text of `--help`.

Both command lines (`jobline serve`, `python -m jobline_server`) and docs/operations.md say the
same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from jobline_server.wrong_settings import SIZE_UNITS


def flag_of(name: str) -> str:
    """The flag of a setting."""
    return "--" + name.replace("_", "-")


def is_switch(info: FieldInfo) -> bool:
    """Whether a setting is on or off: its flag takes no value and has a `--no-` beside it."""
    return info.annotation is bool


def help_of(info: FieldInfo, default: str = "") -> str:
    """What `--help` says of a setting: meaning, choices, default; `default` where a command has one
    of its own.
    """
    words = f" One of {', '.join(choices(info))}." if choices(info) else ""
    return f"{info.description}{words} Default: {default or shown_default(info)}."


def metavar_of(name: str, info: FieldInfo) -> str:
    """What stands for a setting's value."""
    if choices(info):
        return "WORD"
    if name in {"listen", "http"}:
        return "HOST:PORT"
    if name.endswith("_bytes"):
        return "SIZE"
    if name.endswith("_seconds"):
        return "SECONDS"
    return "PATH" if info.annotation in {Path, Path | None} else "N"


def shown_default(info: FieldInfo) -> str:
    """A field's default as a person would type it."""
    value = info.default
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if type(value) is not int and isinstance(value, int):  # a size in bytes
        for size, unit in SIZE_UNITS:
            if value >= size and value % size == 0:
                return f"{value // size} {unit}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def choices(info: FieldInfo) -> tuple[str, ...]:
    """The words a field may have, if it may have only some."""
    return get_args(info.annotation) if get_origin(info.annotation) is Literal else ()
