"""A container as far as the kernel makes one: a root of its own, read-only, a process tree in which
the program is the first, a network with nothing but itself, and a user with no rights.

Bubblewrap lays it out as root, and the program becomes its user as a container's does. What stands
for the base image is this machine's /usr and Python.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.helm.rendering import run, tool

PYTHON = Path(sys.base_prefix)
STOP_SECONDS = 60
# What it takes to become another user; the user itself has none of them.
CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_CHOWN")


@dataclass
class Sandbox:
    """Where a program runs. Folders are by their path inside."""

    uid: int
    # Path inside → path outside.
    read_only: dict[str, Path] = field(default_factory=dict)
    writable: dict[str, Path] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    # With the machine's network, for steps of a build that fetch packages.
    network: bool = False

    def command(self, words: Sequence[str]) -> list[str]:
        """The command line that runs `words` inside, as process 1."""
        if os.geteuid() != 0:
            pytest.skip("needs root, to become the user of the image")
        options = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--as-pid-1"]
        options += ["--die-with-parent", "--clearenv"]
        options += [] if self.network else ["--unshare-net"]
        for name in CAPABILITIES:
            options += ["--cap-add", name]
        for name, value in self.environment.items():
            options += ["--setenv", name, value]
        become = () if self.uid == 0 else (*user(self.uid), "--")
        return [tool("bwrap"), *options, *self._mounts(), *become, *words]

    def _mounts(self) -> list[str]:
        machine = {"/usr": Path("/usr"), str(PYTHON): PYTHON}
        read_only = {**machine, **self.read_only}
        # First, as a checkout may be in /tmp.
        options = ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp"]
        # Bubblewrap makes folders above a mount for their owner alone.
        above = {
            str(parent) for path in {**read_only, **self.writable} for parent in Path(path).parents
        }
        for path in sorted(above - {"/", "/tmp"} - set(read_only)):
            if not any(path.startswith(f"{mounted}/") for mounted in read_only):
                options += ["--perms", "0755", "--dir", path]
        for path in ("/usr", *sorted(read_only.keys() - {"/usr"})):
            options += ["--ro-bind", str(read_only[path]), path]
        for name in ("bin", "lib", "lib64", "sbin"):
            options += ["--symlink", f"usr/{name}", f"/{name}"]
        for path, outside in sorted(self.writable.items()):
            options += ["--bind", str(outside), path]
        return [*options, "--remount-ro", "/"]


def user(uid: int) -> tuple[str, ...]:
    """The command that becomes a user, for good and without a capability."""
    return (
        *("/usr/bin/setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"),
        *("--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"),
    )


@dataclass(frozen=True)
class Running:
    """A program in a sandbox, a server mostly; `ready` is its first line."""

    process: subprocess.Popen[str]
    ready: dict[str, object]

    @property
    def pid(self) -> int:
        """The id of the program, as the machine counts. Bubblewrap waits for it."""
        return children_of(self.process)[0]

    def status(self) -> dict[str, str]:
        """What the kernel says of the server's process."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}

    def beside(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Runs a program in the network of the server, as kubelet and other pods reach it."""
        return run("nsenter", f"--net=/proc/{self.pid}/ns/net", *command)

    def stop(self) -> int:
        """Sends SIGTERM to the server; returns its exit code."""
        os.kill(self.pid, signal.SIGTERM)
        return self.process.wait(STOP_SECONDS)


def children_of(process: subprocess.Popen[str]) -> list[int]:
    """The ids of the processes that a process has started."""
    with suppress(OSError):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        return [int(word) for word in children.read_text().split()]
    return []


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Ends a sandbox with the block, whatever became of it. The program first: one that has become
    another user does not die with Bubblewrap.
    """
    try:
        yield process
    finally:
        if process.poll() is None:
            for pid in children_of(process):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.kill()
        process.communicate()


@contextmanager
def serving(sandbox: Sandbox, words: Sequence[str], log: Path) -> Iterator[Running]:
    """Runs a server inside, from its line of readiness to the end of the block."""
    with log.open("w") as stderr:
        process = subprocess.Popen(
            sandbox.command(words), stdout=subprocess.PIPE, stderr=stderr, text=True
        )
    assert process.stdout is not None
    with ended(process):
        line = process.stdout.readline()
        assert line, log.read_text()
        yield Running(process, json.loads(line))
