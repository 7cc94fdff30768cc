"""A real server that `jobline serve` runs, and the command line as a person types it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from typer import testing
from typer.testing import CliRunner

from jobline.cli.root import build

# The runner makes all commands anew in each call, which takes longer than most of these tests.
testing._get_command = cache(testing._get_command)  # type: ignore[attr-defined]
APP = build()

# The id of no job or batch, however many the tests before have pushed.
NO_JOB = 2**42


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON document it printed."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The JSON lines it printed."""
        return [json.loads(line) for line in self.out.splitlines()]


Jobline = Callable[..., Ran]


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The ready line of a server in a process of its own, and `data`, its directory."""
    folder = tmp_path_factory.mktemp("served")
    command = [sys.executable, "-m", "jobline.cli", "serve", "--data", str(folder / "data")]
    command += ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--drain-seconds", "0"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    ready = process.stdout.readline()
    assert ready, (folder / "log").read_text()
    yield json.loads(ready) | {"data": str(folder / "data")}
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0


@pytest.fixture
def jobline(served: dict[str, Any]) -> Jobline:
    """Runs a command against the server."""

    def run(*arguments: object, stdin: bytes | None = None, server: str = "") -> Ran:
        runner = CliRunner(env={"JOBLINE_SERVER": server or served["grpc"], "COLUMNS": "200"})
        ended = runner.invoke(APP, [str(one) for one in arguments], input=stdin)
        if ended.exception is not None and not isinstance(ended.exception, SystemExit):
            raise ended.exception
        return Ran(ended.exit_code, ended.stdout, ended.stderr)

    return run


@pytest.fixture
def queue() -> str:
    """A queue of the test's own."""
    return f"q-{uuid.uuid4().hex[:12]}"
