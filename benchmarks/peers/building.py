"""Brings the programs of a peer, by name, from the registries."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.peer import CannotBuild, Peer
from benchmarks.peers.serving import last_line
from benchmarks.report import ROOT

SCRIPT = "scripts/peers_tools.sh"
BIN = ROOT / ".tools" / "bin"
GO_LOADS = BIN / "peer-loads"
NODE = ROOT / "benchmarks" / "peers" / "node"
BUN = NODE / "node_modules" / ".bin" / "bun"


def command_of(peer: Peer) -> str:
    """What builds a peer, as the documents show it."""
    return " ".join([SCRIPT, *peer.tools])


def build(tools: Sequence[str]) -> None:
    """Brings tools. Raises `CannotBuild` with the reason that the script gives."""
    done = subprocess.run([ROOT / SCRIPT, *tools], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotBuild(last_line(done.stderr or done.stdout))


def go_load(peer: str, at: int | str, variant: str = "") -> Sequence[str]:
    """The load of a peer that is written in Go. `at`: its port, or an address that says more."""
    return [str(GO_LOADS), *_load_flags(peer, at, variant)]


def node_load(runtime: str, peer: str, port: int, variant: str = "") -> Sequence[str]:
    """The load of a peer that is written in JavaScript."""
    return [runtime, str(NODE / "main.js"), *_load_flags(peer, port, variant)]


def _load_flags(peer: str, at: int | str, variant: str) -> list[str]:
    address = f"127.0.0.1:{at}" if isinstance(at, int) else at
    return ["-peer", peer, "-address", address, "-variant", variant]


def said_version(*words: str | Path, pattern: str = r"\d+\.\d+(?:\.\d+)?") -> str:
    """The version in what a program says."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    found = re.search(pattern, done.stdout + done.stderr)
    return found[0] if found else "?"


def go_version(module: str) -> str:
    """The version of a module that the loads are built of."""
    path = ROOT / "benchmarks" / "peers" / "go" / "go.mod"
    found = re.search(rf"^\s+{re.escape(module)} v(\S+)", path.read_text(), re.MULTILINE)
    return found[1] if found else "?"


def npm_version(package: str) -> str:
    """The version of a package that the loads are written with."""
    found = re.search(rf'"{re.escape(package)}": "([^"]+)"', (NODE / "package.json").read_text())
    return found[1] if found else "?"
