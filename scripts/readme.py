"""Run what a document shows, in order, as a reader would: `python scripts/readme.py [FILE]`.

Every `sh`, `bash` or `console` block runs in bash, every `python` block in Python, with .venv in
the path and in a scratch directory that looks like the root of the checkout. What lasts (`jobline
serve`, a worker's `run()` …) runs beside the others until the end, and must not have failed by
then, nor when it is told to stop. A block that a machine cannot run says so in the line before it,
with the reason: `<!-- not run: needs a screen -->`.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+?) -->\n+)?"
    r"^```(?P<language>\w+)[^\n]*\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
SHELLS = {"sh", "bash", "shell", "console"}
LASTING = re.compile(
    r"^(\S*/)?jobline (serve|dev|work|top|tail)\b(?!.*(--help|--exit-when-idle))"
    r"|^python \S+ # lasts$"
)
# These are steps of `make ci` already, or would call this again.
STEPS = re.compile(
    r"^make (setup|test|test-faults|demo|bench|ci|readme|lint|types|pipeline-demo|pipeline-setup)\b"
)
LISTEN = re.compile(r"(?:--listen|--http)[ =](\S+:[1-9]\d*)")
BLOCK_SECONDS_MAX = 120.0
READY_SECONDS_MAX = 20.0
GRACE_SECONDS = 15.0


@dataclass
class Lasting:
    """A command that runs beside the others."""

    command: str
    process: subprocess.Popen[bytes]


def commands_of(language: str, body: str) -> list[str]:
    """The commands of a block, one each unless one of them spans lines."""
    if language == "console":
        body = "\n".join(re.sub(r"^[$>] ", "", line) for line in prompted(body))
    joined = re.sub(r"\\\n\s*", " ", body)
    lines = [line.strip() for line in joined.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    return lines if any(LASTING.match(line) or STEPS.match(line) for line in lines) else [body]


def prompted(body: str) -> list[str]:
    """The lines of a console that a person typed, continued ones included."""
    typed: list[str] = []
    for line in body.splitlines():
        if line.startswith("$ ") or (typed and (line.startswith("> ") or typed[-1].endswith("\\"))):
            typed.append(line)
    return typed


def environment() -> dict[str, str]:
    """The reader's environment: ours, with the checkout's tools first and no colours."""
    folders = [ROOT / ".venv/bin", ROOT / ".tools/bin", Path.home() / "go/bin"]
    path = os.pathsep.join([*map(str, folders), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "TERM": "dumb", "COLUMNS": "100"}


def scratch_root(scratch: Path) -> None:
    """Make a directory look like the checkout, so that what is written there stays there."""
    for entry in ROOT.iterdir():
        if entry.name not in {"data", ".git"}:
            (scratch / entry.name).symlink_to(entry)


def run(command: str, scratch: Path) -> None:
    """Run a command to its end; raises when it fails or takes too long."""
    print(f"$ {command.strip()}", flush=True)
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=scratch,
        env=environment(),
        stdin=subprocess.DEVNULL,
        check=True,
        timeout=BLOCK_SECONDS_MAX,
    )


def start(command: str, scratch: Path) -> Lasting:
    """Start a command that lasts, and wait until the ports that it names answer."""
    print(f"$ {command} &", flush=True)
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command}"],
        cwd=scratch,
        env=environment(),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    serves = re.search(r"jobline (serve|dev)\b", command)
    for address in LISTEN.findall(command) or (["localhost:7070"] if serves else []):
        wait_until_open(address, process)
    return Lasting(command, process)


def wait_until_open(address: str, process: subprocess.Popen[bytes]) -> None:
    """Wait for a port to accept; raises when the process ends or the patience does."""
    host, _, port = address.rpartition(":")
    ends = time.monotonic() + READY_SECONDS_MAX
    while time.monotonic() < ends and process.poll() is None:
        try:
            socket.create_connection((host or "localhost", int(port)), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit(f"nothing listens at {address}")


def stop(lasting: Lasting) -> str | None:
    """End what lasts as a person would; returns what is wrong with how it ended."""
    code = lasting.process.poll()
    if code is None:
        os.killpg(lasting.process.pid, signal.SIGTERM)
        try:
            code = lasting.process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(lasting.process.pid, signal.SIGKILL)
            lasting.process.wait()
            return f"`{lasting.command}` did not stop within {GRACE_SECONDS:.0f} s of SIGTERM"
    fine = {0, -signal.SIGTERM, 128 + signal.SIGTERM}
    return None if code in fine else f"`{lasting.command}` ended with {code}"


def run_block(match: re.Match[str], scratch: Path, lasting: list[Lasting]) -> None:
    """Run one block, or say why not."""
    language, body = match["language"], match["body"]
    if language not in {*SHELLS, "python"}:
        return
    if match["reason"]:
        print(f"# not run: {match['reason']}", flush=True)
        return
    if language == "python":
        language, body = "sh", script_of(body, scratch)
    for command in commands_of(language, body):
        if STEPS.match(command):
            print(f"# a step of its own: {command}", flush=True)
        elif LASTING.match(command):
            lasting.append(start(command.rstrip("& "), scratch))
        else:
            run(command, scratch)


def script_of(body: str, scratch: Path) -> str:
    """Store a `python` block as a script; returns the command that runs it."""
    script = scratch / f"shown_{len(list(scratch.glob('shown_*.py'))) + 1}.py"
    script.write_text(body, encoding="utf-8")
    print(body, end="", flush=True)
    return f"python {script.name}" + (" # lasts" if ".run()\n" in body else "")


def main(document: Path) -> int:
    """Run all blocks of a document; returns the exit code."""
    lasting: list[Lasting] = []
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="jobline-readme-") as folder:
        scratch = Path(folder)
        scratch_root(scratch)
        try:
            for match in BLOCK.finditer(document.read_text(encoding="utf-8")):
                run_block(match, scratch, lasting)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            wrong.append(str(error))
        finally:
            # Last started, first stopped: a worker before the server it speaks to.
            wrong += [said for said in map(stop, reversed(lasting)) if said]
    print("\n".join([f"{document.name}: failed", *wrong] if wrong else [f"{document.name}: works"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "README.md"))
