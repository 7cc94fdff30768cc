"""What a newcomer sees of `make`, and which pages say how to install what is not published."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from shutil import copy

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "clients/python/README.md", "clients/go/README.md", "docs/pipeline.md")


@pytest.mark.parametrize("target", ["demo", "test"])
def test_the_first_line_says_what_is_installed_and_how_long_that_takes(
    target: str, tmp_path: Path
) -> None:
    """On a bare clone: nothing else is said until it is done."""
    command = ["make", "--dry-run", target, f"VENV={tmp_path}/venv"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    first = ended.stdout.splitlines()[0]
    assert first.startswith("echo ")
    assert "about a minute, once" in first


def test_the_tools_of_the_chart_say_first_what_is_installed(tmp_path: Path) -> None:
    """It was silent for a minute. Given a machine on which the first step fails."""
    script = tmp_path / "scripts" / "helm_tools.sh"
    script.parent.mkdir()
    copy(ROOT / "scripts" / script.name, script)
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", script], capture_output=True, text=True, check=False, env={"PATH": path}
    )
    assert ended.returncode == 1
    assert ended.stdout.startswith(".tools: installing Helm 3 and 4, promtool, hadolint")
    assert "about a minute, once" in ended.stdout


@pytest.mark.parametrize("page", [*PAGES, "clients/typescript/README.md"])
def test_a_page_that_names_an_install_says_that_nothing_is_published(page: str) -> None:
    text = " ".join((ROOT / page).read_text().lower().split())
    assert any(
        words in text
        for words in (
            "on a registry yet",
            "not on pypi yet",
            "not published yet",
            "not yet on the registry",
        )
    )
