"""`jobline dev`: a server to try things, with commands to paste."""

from __future__ import annotations

import json
import shlex
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

from jobline._interrupts import EndingQuietly
from jobline_server.cli.dev_options import (
    AsJson,
    ClockFlag,
    ClockKind,
    ClockStart,
    Memory,
    Port,
    UntilEof,
    check_flags,
    defaults_for,
    maker,
    start_ms_of,
)
from jobline_server.cli.flags import PlainHelp, with_settings
from jobline_server.cli.serve import ConfigFile, settings_of
from jobline_server.config import Settings
from jobline_server.dev.memory_directory import memory_directory

if TYPE_CHECKING:
    from jobline_server.serving import Runnable

# A server to try things should stop quickly.
_DRAIN_SECONDS = 2
_DEFAULT_TARGET = "127.0.0.1:7070"

_DEFAULTS: dict[str, Any] = {
    "log_level": "warning",
    "log_format": "console",
    "drain_seconds": _DRAIN_SECONDS,
}
# The defaults that differ from those of `serve`, as shown by `--help`.
SHOWN_DEFAULTS = {name: str(value) for name, value in _DEFAULTS.items()} | {
    "data": "a directory of its own, removed at the end",
    "listen": f"{Settings.model_fields['listen'].default}, with another port if it is taken",
    "http": f"{Settings.model_fields['http'].default}, with another port if it is taken",
}


def register(app: typer.Typer) -> None:
    """Adds `dev`."""
    app.command("dev", cls=PlainHelp)(with_settings(dev, defaults=SHOWN_DEFAULTS))


def dev(  # noqa: PLR0913  # one keyword for each flag
    *,
    config: ConfigFile = None,
    memory: Memory = False,
    clock: ClockFlag = ClockKind.SYSTEM,
    clock_start: ClockStart = None,
    port: Port = None,
    as_json: AsJson = False,
    until_eof: UntilEof = False,
    given: dict[str, Any],
) -> None:
    """Run a server to try things, or for tests.

    Its directory is removed at the end, unless --data names one. It takes the usual ports if they
    are free, others if not. It is the real server: nothing is simulated.

    For tests in any language: --memory --clock=manual --port 0 --json --until-eof. The ready line
    on stdout has the address, `grpc`; TestService moves the clock.
    """
    with EndingQuietly():
        from jobline_server.serving import print_ready, run

    chosen = settings_of(given, config).model_fields_set
    is_kept = "data" in chosen
    check_flags(chosen, memory=memory, port=port)
    start_ms = start_ms_of(clock, clock_start)
    usual: dict[str, Any] = _DEFAULTS | {
        "listen": free_address(Settings.model_fields["listen"].default),
        "http": free_address(Settings.model_fields["http"].default),
    }
    usual |= defaults_for(memory=memory, clock=clock, port=port)
    make_directory = memory_directory if memory else temporary_directory
    with ExitStack() as stack:
        if not is_kept:
            usual["data"] = stack.enter_context(make_directory())
        defaults = {name: value for name, value in usual.items() if name not in chosen}
        settings = settings_of(given | defaults, config)
        where = "in memory" if memory else f"{settings.data}"
        where += "" if is_kept else " (removed at the end)"

        def announce(server: Runnable) -> None:
            if as_json:
                print_ready(server, as_json=True, clock=clock.value)
            else:
                show_ready(server.addresses[0], server.http, where)

        make = maker(None if is_kept else make_directory, clock, start_ms)
        code = run(settings, announce, make=make, until_eof=until_eof)
    raise typer.Exit(code)


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """Makes a directory for the length of the block."""
    with tempfile.TemporaryDirectory(prefix="jobline-dev-") as folder:
        yield Path(folder)


def free_address(usual: str) -> str:
    """Returns the usual address if it is free, else the same host with any free port."""
    host, _, port = usual.rpartition(":")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
        except OSError:
            return f"{host}:0"
    return usual


def show_ready(address: str, http: str, data: str) -> None:
    """Prints the addresses, and commands to paste."""
    console = Console(highlight=False, soft_wrap=True)
    target = "" if address == _DEFAULT_TARGET else f" -s {address}"
    payload = shlex.quote(json.dumps({"to": "a@b.c"}, separators=(",", ":")))
    rows = [
        ("data", data),
        ("metrics", f"http://{http}/metrics" if http else "no HTTP port"),
        ("push", f"jobline push emails {payload}{target}"),
        ("work", f"jobline work emails --shell 'cat; echo'{target}"),
        ("watch", f"jobline top{target}"),
        ("grpcurl", f"grpcurl -plaintext {address} list"),
    ]
    # Captured, because the console would end the process when a pipe is closed.
    with console.capture() as shown:
        title = ("Jobline is ready", "bold green")
        console.print(Text.assemble(title, f" at {address}; ^C ends it"))
        for name, value in rows:
            console.print(Text.assemble((f"  {name:<8}", "dim"), value))
    sys.stdout.write(shown.get())
    sys.stdout.flush()
