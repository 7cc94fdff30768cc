"""The texts of settings for people: defaults, choices, `--help`.

Both command lines (`jobline serve`, `python -m jobline_server`) and docs/operations.md use them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from jobline_server.wrong_settings import SIZE_UNITS

# Most start a server with these, and look for no other.
FIRST = ("data", "listen", "http")
_METAVARS = {
    "listen": "HOST:PORT",
    "http": "HOST:PORT",
    "health_listen": "HOST:PORT",
    "http_cors_origins": "ORIGINS",
    "history": "DIR|URL",
    "backup_to": "DIR|URL",
}


def flag_of(name: str) -> str:
    """Returns the flag of a setting."""
    return "--" + name.replace("_", "-")


def is_switch(info: FieldInfo) -> bool:
    """Returns whether a setting is a boolean, with the flags `--name` and `--no-name`."""
    return info.annotation is bool


def help_of(info: FieldInfo, default: str = "") -> str:
    """Returns the help of a setting: meaning, choices, default. `default` replaces that of the
    setting.
    """
    words = f" One of {', '.join(choices(info))}." if choices(info) else ""
    return f"{info.description}{words} Default: {default or shown_default(info)}."


def in_order(fields: Mapping[str, FieldInfo]) -> dict[str, FieldInfo]:
    """Returns settings in the order in which people read them: first those that most set."""
    return {name: fields[name] for name in FIRST if name in fields} | dict(fields)


def metavar_of(name: str, info: FieldInfo) -> str:
    """Returns the placeholder of a setting's value."""
    if choices(info):
        return "WORD"
    if name in _METAVARS:
        return _METAVARS[name]
    if name.endswith("_bytes"):
        return "SIZE"
    if name.endswith("_seconds"):
        return "SECONDS"
    if info.annotation in {Path, Path | None}:
        return "PATH"
    return "TEXT" if info.annotation is str else "N"


def shown_default(info: FieldInfo) -> str:
    """Returns a setting's default as a person would type it."""
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
    """Returns the values of a setting that is a choice; else ()."""
    return get_args(info.annotation) if get_origin(info.annotation) is Literal else ()
