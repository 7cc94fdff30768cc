"""The server of `jobline bench`: a process of its own, and the disk that it writes to.

It ends when its stdin is closed, so it cannot outlive the command, however that ends; and its
directory goes with it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jobline._installing import how_to_install
from jobline.cli.exit_codes import UsageError
from jobline.cli.output import Output

_STOP_SECONDS = 30.0
_FSYNCS = 200
# The native transport has a socket in TMPDIR, whose path has 107 bytes at most.
_SOCKET_FOLDER_BYTES_MAX = 64
_FSYNC_SECONDS_MAX = 3.0
_WRITTEN = bytes(4_096)


@contextmanager
def own_server(folder: Path, out: Output) -> Iterator[str]:
    """Runs a server with its files in a new directory in `folder`; yields its address."""
    if importlib.util.find_spec("jobline_server") is None:
        raise UsageError(
            "a server of its own needs jobline-server: name a server with --server, or install it "
            + how_to_install("jobline-server", "native")
        )
    command = [sys.executable, "-m", "jobline.cli", "dev", "--port", "0", "--http", ""]
    command += ["--json", "--until-eof"]
    if len(os.fsencode(folder.resolve())) > _SOCKET_FOLDER_BYTES_MAX:
        command += ["--transport", "grpcio"]
    # Not the settings of another server that are in the environment; and TMPDIR is where it makes
    # its directory.
    inherited = {name: value for name, value in os.environ.items() if not _is_setting(name)}
    with subprocess.Popen(  # noqa: S603  # our own command
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=inherited | {"TMPDIR": str(folder.resolve())},
        text=True,
        start_new_session=True,  # ^C is for the command, which ends it when it has cleaned up
    ) as process:
        try:
            with out.progress("starting a server", None):
                address = _address_of(process)
            yield address
        finally:
            _end(process)


def _is_setting(name: str) -> bool:
    return name.startswith("JOBLINE_")


def _address_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None  # noqa: S101  # it is a pipe
    ready = process.stdout.readline()
    if not ready:
        raise UsageError("the server of its own did not start; its log says why")
    return str(json.loads(ready)["grpc"])


def _end(process: subprocess.Popen[str]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def fsync_times(folder: Path) -> list[float]:
    """Returns how long it takes to append 4 KiB and have them on the disk, some times, in seconds.
    Raises UsageError for a directory in which nothing can be written.
    """
    times: list[float] = []
    try:
        with tempfile.TemporaryFile(dir=folder, prefix=".jobline-bench-") as file:
            end = time.perf_counter() + _FSYNC_SECONDS_MAX
            while len(times) < _FSYNCS and time.perf_counter() < end:
                began = time.perf_counter()
                os.write(file.fileno(), _WRITTEN)
                os.fsync(file.fileno())
                times.append(time.perf_counter() - began)
    except OSError as error:
        why = os.strerror(error.errno or 0).lower()
        raise UsageError(
            f"nothing can be written in {folder}: {why}; name another --data"
        ) from None
    return times
