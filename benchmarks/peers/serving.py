"""Servers as groups of processes: started on one core, ended whatever happens.

A program that is ended by SIGKILL leaves its group behind only if this process is killed too.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.peers.peer import CannotMeasure, Command
from benchmarks.processes import SERVER_CORE

START_SECONDS = 30.0
STOP_SECONDS = 10.0


def end_servers_when_ended() -> None:
    """Lets SIGTERM and SIGHUP end this process as Ctrl-C does: by an exception, on whose way out
    servers and loads are ended.
    """
    for how in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(how, lambda number, _frame: sys.exit(128 + number))


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@contextmanager
def served(command: Command, directory: Path, traced: Sequence[str] = ()) -> Iterator[int]:
    """Runs a server, under the words of a tracer if there are any; yields its port when it listens.
    Its files are below `directory`, which its user can write.
    """
    if command.user is not None:
        shutil.chown(directory, command.user)
    log = directory.parent / f"{directory.name}.log"
    with log.open("ab") as written:
        if command.before:
            _prepare(command, directory, log)
        process = subprocess.Popen(
            ["taskset", "-c", str(SERVER_CORE), *traced, *command.words],
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=written,
            start_new_session=True,
            user=command.user,
            cwd=directory,
        )
    try:
        _wait_for(process, command.port, log)
        yield command.port
    finally:
        end_group(process)


def _prepare(command: Command, directory: Path, log: Path) -> None:
    done = subprocess.run(
        command.before,
        capture_output=True,
        text=True,
        user=command.user,
        cwd=directory,
        check=False,
    )
    if done.returncode:
        raise CannotMeasure(f"{command.before[0]} failed: {last_line(done.stderr)}; see {log}")


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            raise CannotMeasure(f"the server ended at once: {last_line(log.read_text())}")
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise CannotMeasure(f"the server did not listen after {START_SECONDS:.0f} s; see {log}")


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends a process and all that it started: politely, then at once."""
    for how, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, STOP_SECONDS)):
        try:
            os.killpg(process.pid, how)
        except ProcessLookupError:
            break
        end = time.monotonic() + seconds
        while _is_there(process) and time.monotonic() < end:
            time.sleep(0.02)
    process.wait()


def _is_there(process: subprocess.Popen[bytes]) -> bool:
    process.poll()
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def last_line(said: str) -> str:
    """The last line of what a program said that is not empty."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"
