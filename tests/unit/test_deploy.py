"""The files of `deploy/`: what they name is there, as far as can be told without an engine."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from jobline_server.cli.plain import make_parser
from jobline_server.config import FILE_VARIABLE, Settings

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy" / "systemd" / "jobline.service"
DOCKERFILE = ROOT / "deploy" / "docker" / "Dockerfile"
# systemd-analyze security: 0 is locked up, 10 is open.
EXPOSURE_MAX = 1.5


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's, continued lines joined."""
    text = re.sub(r"\\\n\s*", " ", DOCKERFILE.read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def test_the_image_says_only_what_the_server_knows() -> None:
    """Trial D13: variables are settings. What runs, and as whom: tests/helm/test_image.py."""
    said = dict(instructions())
    for variable in re.findall(r"JOBLINE_(\w+)=", said["ENV"]):
        assert variable.lower() in Settings.model_fields


def test_the_unit_starts_the_server_with_flags_that_it_knows() -> None:
    """Trial D13: and is told when it is ready."""
    text = UNIT.read_text()
    (command,) = re.findall(r"^ExecStart=\S+ -m jobline_server (.*)$", text, re.MULTILINE)
    assert make_parser().parse_args(shlex.split(command)).data == "/var/lib/jobline/data"
    assert "\nType=notify\n" in text


def test_the_unit_names_no_settings_that_nobody_reads() -> None:
    """Trial D13: it spoke of a settings file that the server was not told of."""
    text = UNIT.read_text()
    named = set(re.findall(r"/etc/jobline/[\w.]+", text))
    read = set(re.findall(r"^EnvironmentFile=-?(\S+)$", text, re.MULTILINE))
    read |= set(re.findall(rf"{FILE_VARIABLE}=(\S+)", text))
    assert named == read


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
def test_systemd_takes_the_unit_and_finds_it_hardened() -> None:
    """Trial D13: the only complaint is that /opt/jobline is not installed here."""
    verify = subprocess.run(
        ["systemd-analyze", "verify", UNIT], capture_output=True, text=True, check=False
    )
    complaints = [line for line in verify.stderr.splitlines() if "jobline" in line]
    assert all("/opt/jobline/bin/python is not executable" in line for line in complaints)
    security = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", UNIT],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", security.stdout)
    if found is None:
        pytest.skip("this systemd-analyze has no --offline")
    assert float(found[1]) <= EXPOSURE_MAX
