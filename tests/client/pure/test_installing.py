"""Messages say how to install what is missing, and it works."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from jobline._installing import Package, how_to_install

ROOT = Path(__file__).parents[3]


def project(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return found


@pytest.mark.parametrize(
    ("package", "extra"),
    [
        ("jobline", "cli"),
        ("jobline", "codec"),
        ("jobline-server", "native"),
        ("jobline-server", "otel"),
    ],
)
def test_each_path_has_the_extra(package: Package, extra: str) -> None:
    paths = re.findall(r"'\./?([^\[]*)\[(\w+)\]'", how_to_install(package, extra))
    projects = [(project(ROOT / path), named) for path, named in paths]
    for found, named in projects:
        assert named in found["optional-dependencies"]
    assert (projects[-1][0]["name"], projects[-1][1]) == (package, extra)


def test_it_is_what_the_readme_says() -> None:
    command = how_to_install("jobline-server", "native").partition(": ")[2]
    assert f"\n{command}\n" in (ROOT / "README.md").read_text()
