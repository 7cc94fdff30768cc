"""Types of settings that more than a number or a word can be wrong with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from jobline_server.addresses import split_address

# As a browser sends it: in lower case, without a path.
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")


def ballast_bytes_min(max_payload_bytes: int) -> int:
    """Returns the size of the smallest ballast. Its last quarter must have room for a slice of
    retention in the write-ahead logs of both files, the rest for commits of pushes under way when
    the disk was full.
    """
    return (8 << 20) + 2 * max_payload_bytes


def ballast_problem(ballast_bytes: int, max_payload_bytes: int) -> str:
    """Returns why a ballast is too small for such payloads, "" if it is not."""
    minimum = ballast_bytes_min(max_payload_bytes)
    if not 0 < ballast_bytes < minimum:
        return ""
    return (
        f"max_payload_bytes {_mib(max_payload_bytes)} needs ballast_bytes of at least "
        f"{_mib(minimum)} (it is {_mib(ballast_bytes)}), or 0 for none"
    )


def _mib(size: int) -> str:
    return f"{-(-size // (1 << 20)):,} MiB"


def _address(value: str) -> str:
    if value:
        split_address(value)
    return value


def _directory(value: object) -> object:
    if isinstance(value, str) and not value.strip():
        raise ValueError("must name a directory")  # "" would be the current one
    return value


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _socket(value: object) -> object:
    return None if value == "" else value


def _origins(value: str) -> str:
    for origin in origins_of(value):
        if origin != "*" and not ORIGIN.fullmatch(origin):
            raise ValueError(f"{origin}: an origin is SCHEME://HOST or SCHEME://HOST:PORT, or *")
    return value


def origins_of(value: str) -> tuple[str, ...]:
    """Returns the origins of a list with commas."""
    return tuple(origin for part in value.split(",") if (origin := part.strip()))


Address = Annotated[str, AfterValidator(_address)]
"""HOST:PORT, or nothing."""
Directory = Annotated[Path, BeforeValidator(_directory)]
File = Annotated[Path | None, BeforeValidator(_socket)]
Socket = Annotated[Path | None, BeforeValidator(_socket)]
Origins = Annotated[str, AfterValidator(_origins)]
"""Origins of web pages with commas, or `*`."""
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error", "critical"], BeforeValidator(_lower)
]
Calls = Annotated[int, Field(ge=1, le=1_000_000)]
Jobs = Annotated[int, Field(ge=0, le=1_000_000)]
KeptSeconds = Annotated[float, Field(ge=0, le=34_560_000)]
"""Up to 400 days."""
