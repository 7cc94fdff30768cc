"""Does what a Dockerfile says, without an engine: each stage is a folder, each step is done in it.

What the base image has is this machine's /usr and Python. Only what our Dockerfile uses is known
here; another instruction is an error.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from dockerfile_parse import DockerfileParser

from tests.helm.rendering import ROOT, run
from tests.helm.sandbox import PYTHON, Sandbox

DOCKERFILE = ROOT / "deploy" / "docker" / "Dockerfile"
MOUNT = re.compile(r"--mount=type=cache,target=(\S+)\s+")
# Instructions that describe, and change no file.
DESCRIBED = {
    "EXPOSE",
    "STOPSIGNAL",
    "HEALTHCHECK",
    "ENTRYPOINT",
    "USER",
    "LABEL",
    "VOLUME",
}
# Of this machine, so that a step can reach the package index.
OF_THE_NETWORK = ("PIP_", "SSL_", "HTTP_", "HTTPS_", "NO_PROXY", "REQUESTS_", "http", "no_proxy")


@dataclass
class Stage:
    """A stage, and what was said in it."""

    base: str
    root: Path
    folder: str = "/"
    environment: dict[str, str] = field(default_factory=dict)
    said: dict[str, list[str]] = field(default_factory=dict)

    def inside(self, path: str) -> Path:
        """Where a path of the stage is on this machine."""
        absolute = path if path.startswith("/") else f"{self.folder.rstrip('/')}/{path}"
        return self.root / absolute.lstrip("/")

    @property
    def mounts(self) -> dict[str, Path]:
        """The folders that the stage has made at its root, by their paths."""
        return {f"/{path.name}": path for path in sorted(self.root.iterdir())}


def instructions() -> list[dict[str, Any]]:
    """The Dockerfile's, one by one."""
    parser = DockerfileParser(fileobj=DOCKERFILE.open("rb"))
    return [step for step in parser.structure if step["instruction"] != "COMMENT"]


def stages(folder: Path, *, build: bool = True) -> list[Stage]:
    """Does all steps; returns the stages, the image last. Without `build` only what was said."""
    found: dict[str, Stage] = {}
    for step in instructions():
        word, value = step["instruction"], step["value"]
        if word == "FROM":
            base, _, name = value.partition(" AS ")
            stage = Stage(base, folder / (name or "image"))
            stage.environment["PATH"] = "/usr/local/bin:/usr/bin:/bin"
            stage.root.mkdir()
            found[name or "image"] = stage
            continue
        stage.said.setdefault(word, []).append(value)
        if word not in DESCRIBED:
            do(word, value, stage, found, build=build)
    return list(found.values())


def do(word: str, value: str, stage: Stage, known: dict[str, Stage], *, build: bool) -> None:
    """Does one step of a stage."""
    if word == "WORKDIR":
        stage.folder = value
        stage.inside(value).mkdir(parents=True, exist_ok=True)
    elif word in {"ARG", "ENV"}:
        for pair in shlex.split(value):
            name, _, text = pair.partition("=")
            stage.environment[name] = text.replace("$PATH", stage.environment["PATH"])
    elif word == "COPY":
        if build:
            copy(value, stage, known)
    elif word == "RUN":
        if build:
            run_in(stage, value)
    else:
        raise AssertionError(f"{word} is not known here")


def copy(value: str, stage: Stage, known: dict[str, Stage]) -> None:
    """Copies files, of the checkout or of another stage. Of a folder it is the contents."""
    words = shlex.split(value)
    options = dict(word.lstrip("-").split("=") for word in words if word.startswith("--"))
    *sources, target = (word for word in words if not word.startswith("--"))
    for source in sources:
        origin = known[options["from"]].inside(source) if "from" in options else ROOT / source
        into = stage.inside(target)
        if origin.is_dir():
            left_out = shutil.ignore_patterns("__pycache__", "*.egg-info", ".venv", "node_modules")
            ignore = None if "from" in options else left_out
            shutil.copytree(origin, into, symlinks=True, dirs_exist_ok=True, ignore=ignore)
        else:
            into.mkdir(parents=True, exist_ok=True)
            shutil.copy(origin, into)
        if "chown" in options:
            run("chown", "-R", options["chown"], into)


def machine() -> dict[str, Path]:
    """What of this machine stands for the base image: its Python, where the image has it."""
    if not (PYTHON / "bin" / "python").exists() or Path("/usr") == PYTHON:
        pytest.skip("needs a Python with a prefix of its own, as the base image has it")
    return {"/usr/local": PYTHON}


def run_in(stage: Stage, value: str) -> None:
    """Runs a step as root, on the machine's network, with the caches that it asks for."""
    cache = Path.home() / ".cache" / "pip"
    cache.mkdir(parents=True, exist_ok=True)
    (stage.root / "opt").mkdir(exist_ok=True)
    (stage.root / "data").mkdir(exist_ok=True)
    writable = {**stage.mounts, **dict.fromkeys(MOUNT.findall(value), cache)}
    passed = {name: text for name, text in os.environ.items() if name.startswith(OF_THE_NETWORK)}
    etc = ("/etc/ssl", "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/pip.conf")
    links = (passed.get("PIP_FIND_LINKS", ""), str(Path.home() / ".config" / "pip"))
    here = {
        path: Path(path) for path in (*etc, *links) if path.startswith("/") and Path(path).exists()
    }
    sandbox = Sandbox(
        uid=0,
        read_only={**machine(), **here},
        writable=writable,
        environment={**passed, "HOME": "/root", **stage.environment},
        network=True,
    )
    script = f"set -e; cd {shlex.quote(stage.folder)}; {MOUNT.sub('', value)}"
    done = run(*sandbox.command(["/bin/sh", "-c", script]))
    assert done.returncode == 0, done.stdout + done.stderr
