"""Another commit as something to run: its files, an environment of its own, the flags it knows.

Both are made once per commit and kept beside the checkout, so that a second run starts at once.
`make clean` removes them.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tarfile
import venv
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import ROOT

# Not below .bench: a run of the benchmarks removes that.
TREES = ROOT / ".bench-trees"
FLAG = re.compile(r"--[a-z][a-z0-9-]*")


class NoTree(Exception):
    """There is no such commit, or its server does not run."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A commit, or the working tree, and the interpreter that runs its server and client."""

    name: str
    python: Path
    flags: frozenset[str]


def this_tree() -> Tree:
    """The working tree, in the environment that the benchmarks run in."""
    python = Path(sys.executable)
    return Tree(f"here{_position()}", python, _flags(python))


def _position() -> str:
    """The commit that the working tree began with; an unpacked archive has none."""
    try:
        commit = _git("rev-parse", "--short", "HEAD")
        changed = " and changes" if _git("status", "--porcelain", "--untracked-files=no") else ""
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f" ({commit}{changed})"


def tree_of(ref: str) -> Tree:
    """Another commit; the first time, this takes about half a minute."""
    try:
        commit = _git("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    except (OSError, subprocess.CalledProcessError):
        raise NoTree(f"git knows no commit {ref!r}") from None
    place = TREES / commit[:12]
    ready = place / "ready"
    if not ready.exists():
        shutil.rmtree(place, ignore_errors=True)
        _unpack(commit, place / "tree")
        _install(place)
        ready.touch()
    python = place / "venv/bin/python"
    short = commit[:7]
    return Tree(short if commit.startswith(ref) else f"{ref} ({short})", python, _flags(python))


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def _unpack(commit: str, tree: Path) -> None:
    tree.mkdir(parents=True)
    packed = subprocess.run(
        ["git", "archive", "--format=tar", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(tree, filter="data")


def _install(place: Path) -> None:
    """Both distributions of the commit, at the versions that its checks ran with."""
    # Linked, as this tree's is: the same interpreter on both sides.
    venv.create(place / "venv", with_pip=True, symlinks=True)
    pip = [str(place / "venv/bin/python"), "-m", "pip", "install", "--disable-pip-version-check"]
    paths = ["-c", "constraints.txt", "-e", "clients/python", "-e", ".[native]"]
    done = subprocess.run(
        [*pip, *paths],
        cwd=place / "tree",
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        raise NoTree(f"pip could not install that commit:\n{done.stdout.decode()[-2000:]}")


def _flags(python: Path) -> frozenset[str]:
    """What a server's `--help` names: a flag that is newer than the server would stop it."""
    done = subprocess.run(
        [python, "-m", "jobline_server", "--help"], check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise NoTree(f"the server does not show its flags:\n{done.stderr[-2000:]}")
    return frozenset(FLAG.findall(done.stdout))
