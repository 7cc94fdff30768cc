"""Ctrl-C while a command or a server begins: it ends with 130, and prints nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Stands in for a module that is imported at a start. The interrupt comes within a callback of the
# import system, too, where Python prints and forgets an exception.
INTERRUPTS = """
import os, signal, weakref
class Gone: pass
gone = Gone()
ref = weakref.ref(gone, lambda _: os.kill(os.getpid(), signal.SIGINT))
del gone
os.kill(os.getpid(), signal.SIGINT)
"""
# The real one is imported then.
GOES_ON = """
import sys
sys.path = [folder for folder in sys.path if folder not in ("", __file__.rpartition("/")[0])]
del sys.modules["typer"]
import typer
"""
CLI = [sys.executable, "-c", "from jobline.cli import main; main()"]
SERVER = [sys.executable, "-m", "jobline_server"]


def interrupted(
    folder: Path, command: list[str], module: str, code: str = INTERRUPTS
) -> tuple[int, str]:
    """Runs a command that gets the signal as it imports a module; returns its end."""
    (folder / f"{module}.py").write_text(code)
    ended = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=folder,
    )
    return ended.returncode, ended.stderr + ended.stdout


@pytest.mark.parametrize(
    ("command", "module"),
    [
        ([*CLI, "queue", "ls"], "typer"),
        ([*CLI, "queue", "ls"], "pydantic"),
        ([*CLI, "serve", "--data", "x"], "uvloop"),
        ([*CLI, "dev", "--memory", "--port", "0"], "uvloop"),
        ([*SERVER, "--data", "x"], "argparse"),
        ([*SERVER, "--data", "x"], "pydantic"),
        ([*SERVER, "--data", "x"], "uvloop"),
    ],
)
def test_interrupted_import_ends_with_130_in_silence(
    tmp_path: Path, command: list[str], module: str
) -> None:
    assert interrupted(tmp_path, command, module) == (130, "")


def test_caller_who_ignores_interrupts_is_not_interrupted(tmp_path: Path) -> None:
    """As a shell has its background jobs do (`jobline … &` in a script)."""
    code = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {CLI[2]}"
    command = [sys.executable, "-c", code, "--version"]
    code_of_end, said = interrupted(tmp_path, command, "typer", INTERRUPTS + GOES_ON)
    assert code_of_end == 0
    assert said.startswith("jobline")
