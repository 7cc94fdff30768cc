"""The flags of `jobline dev` that are not settings, and what they make of its settings."""

from __future__ import annotations

from collections.abc import Callable, Container
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobline_server.config import Settings

if TYPE_CHECKING:
    from jobline_server.serving import Runnable


class ClockKind(StrEnum):
    """Whose time a server has."""

    SYSTEM = "system"
    MANUAL = "manual"


AsJson = Annotated[bool, typer.Option("--json", help="Print the ready line as JSON.")]
Memory = Annotated[
    bool, typer.Option("--memory", help="Keep everything in memory; not with --data.")
]
ClockFlag = Annotated[
    ClockKind,
    typer.Option(
        "--clock",
        help="manual: for tests. Time stands still until TestService moves it.",
    ),
]
ClockStart = Annotated[
    str | None,
    typer.Option(
        "--clock-start",
        metavar="TIME",
        help="First time of a manual clock, as 2026-03-01T09:00:00Z. Default: now.",
    ),
]
Port = Annotated[
    int | None,
    typer.Option("--port", min=0, max=65_535, help="Port of gRPC; 0 picks a free one."),
]
UntilEof = Annotated[
    bool,
    typer.Option("--until-eof", help="Stop also at the end of stdin: with the program before it."),
]

# What is different in memory: no reserve on the disk, and short journals.
IN_MEMORY: dict[str, Any] = {
    "ballast_bytes": 0,
    "low_space_bytes": 0,
    "checkpoint_journal_bytes": 16 << 20,
}
# And for tests: a quick start and stop.
FOR_TESTS: dict[str, Any] = {"http": "", "transport": "grpcio", "drain_seconds": 0}


def defaults_for(*, memory: bool, clock: ClockKind, port: int | None) -> dict[str, Any]:
    """Returns the settings that these flags stand for, where no other flag sets them."""
    settings: dict[str, Any] = {}
    if memory:
        settings |= IN_MEMORY
    if clock is ClockKind.MANUAL:
        settings |= FOR_TESTS
    if port is not None:
        host = Settings.model_fields["listen"].default.rpartition(":")[0]
        settings["listen"] = f"{host}:{port}"
    return settings


def check_flags(chosen: Container[str], *, memory: bool, port: int | None) -> None:
    """Refuses flags that contradict each other; `chosen` are the settings that have a value."""
    if memory and "data" in chosen:
        raise typer.BadParameter("--memory keeps nothing, and a data directory is set")
    if port is not None and "listen" in chosen:
        raise typer.BadParameter("--port stands for --listen, which is set")


def start_ms_of(clock: ClockKind, start: str | None) -> int | None:
    """Returns the first time of a manual clock in milliseconds since 1970; None for that of the
    machine. Raises `typer.BadParameter`.
    """
    if start is None:
        return None
    from jobline_server.rpc.test_service import START_MS_MAX, START_MS_MIN

    if clock is not ClockKind.MANUAL:
        raise typer.BadParameter("--clock-start needs --clock=manual")
    try:
        moment = datetime.fromisoformat(start)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise typer.BadParameter(f"{start}: write a time as 2026-03-01T09:00:00Z, with its zone")
    start_ms = round(moment.astimezone(UTC).timestamp() * 1_000)
    if not START_MS_MIN <= start_ms < START_MS_MAX:
        raise typer.BadParameter(f"{start}: must be in 2025 … 2199")
    return start_ms


def maker(directory: Any, clock: ClockKind, start_ms: int | None) -> Callable[[Settings], Runnable]:
    """Returns what makes the server. `directory` makes directories of servers that may be reset;
    None: there is one, and it is kept.
    """
    from jobline_server.app import Server

    if clock is ClockKind.SYSTEM:
        return Server
    from jobline_server.dev.servers import ManualServer

    return lambda settings: ManualServer(settings, directory, start_ms=start_ms)
