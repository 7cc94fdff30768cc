"""What the README shows with grpcurl and in Python works, against a server of the test's own.

`make readme` runs everything it shows, on the ports it names; this runs the lines that people will
paste first, on free ports, with every run of the tests.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import json_format

from jobline import Client
from jobline.v1 import job_service_pb2, job_service_pb2_grpc

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN_ADDRESS = "localhost:7070"
# A second or two each, unless the machine is busy with other things.
SECONDS_MAX = 50

GRPCURL = shutil.which(
    "grpcurl",
    path=os.pathsep.join(
        [os.environ["PATH"], str(ROOT / ".tools/bin"), str(Path.home() / "go/bin")]
    ),
)


def blocks(language: str) -> list[str]:
    """The README's blocks of a language."""
    return [body for found, body in BLOCK.findall(README) if found == language]


def grpcurl_commands() -> list[str]:
    joined = "\n".join(blocks("sh")).replace("\\\n", " ")
    return [line.strip() for line in joined.splitlines() if line.startswith("grpcurl")]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A server that `jobline dev` runs."""
    command = [sys.executable, "-m", "jobline.cli", "dev", "--json"]
    command += ["--listen", "127.0.0.1:0", "--http", ""]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield json.loads(process.stdout.readline())["grpc"]
    process.send_signal(signal.SIGINT)
    assert process.wait(SECONDS_MAX) == 0


def run(command: str) -> str:
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.skipif(GRPCURL is None, reason="grpcurl is not installed (scripts/ci.sh brings it)")
def test_grpcurl_lines_work_as_shown(address):
    """list, describe and Push, exactly as they stand there but for the address."""
    commands = grpcurl_commands()
    assert len(commands) == 4
    listed, *described, pushed = [
        run(one.replace(SHOWN_ADDRESS, address).replace("grpcurl", str(GRPCURL), 1))
        for one in commands
    ]
    assert "jobline.v1.JobService" in listed.split()
    assert "grpc.health.v1.Health" in listed.split()
    assert all("//" in one for one in described), "described with comments"
    assert json.loads(pushed)["ackLevel"] == "ACK_LEVEL_FSYNCED"


def test_readme_shows_the_lines_everybody_tries_first():
    """These very lines are what people look for."""
    commands = grpcurl_commands()
    assert "grpcurl -plaintext localhost:7070 list" in commands
    assert any(line.startswith("grpcurl -plaintext localhost:7070 describe") for line in commands)
    payload = r"""-d '{"queue":"emails","jobs":[{"text":"{\"to\":\"a@b.c\"}"}]}'"""
    assert any(payload in line and line.endswith("JobService/Push") for line in commands)


def pushed_by_grpcurl(address: str) -> str:
    """Pushes the message of README's grpcurl line, without grpcurl; returns the job's id."""
    shown = re.search(r"-d '(\{.*?\})'", grpcurl_commands()[-1])
    assert shown is not None
    request = json_format.Parse(shown[1], job_service_pb2.PushRequest())
    with Client(address) as client:
        answer = job_service_pb2_grpc.JobServiceStub(client.channel).Push(request)
    return str(answer.first_id)


def pushed_by_command_line(address: str) -> str:
    """Runs README's `jobline push emails`; returns the job's id."""
    (line,) = [
        line for block in blocks("sh") for line in block.splitlines() if "push emails" in line
    ]
    command = line.replace("jobline", f"{sys.executable} -m jobline.cli", 1)
    return str(json.loads(run(f"{command} --server {address} --json"))["id"])


def test_the_worker_does_every_email_that_is_pushed(address):
    """Trial D5: README's worker takes the jobs of all three producers, and stops at SIGTERM."""
    producer, worker = (block.replace(SHOWN_ADDRESS, address) for block in blocks("python"))
    job_id, outcome, level = run(f"{sys.executable} -c {shlex.quote(producer)}").split()
    assert (outcome, level) == ("CREATED", "FSYNCED")
    ids = [job_id, pushed_by_grpcurl(address), pushed_by_command_line(address)]
    working = subprocess.Popen([sys.executable, "-c", worker])
    try:
        wait = f"{sys.executable} -m jobline.cli job wait {' '.join(ids)} --json"
        lines = run(f"{wait} --server {address} --timeout {SECONDS_MAX}s").splitlines()
    finally:
        working.send_signal(signal.SIGTERM)
    assert working.wait(SECONDS_MAX) == 0
    ended = [json.loads(line) for line in lines]
    assert {str(one["id"]) for one in ended} == set(ids)
    assert [one["state"] for one in ended] == ["COMPLETED"] * len(ids)
    assert all(json.loads(one["result"]) == {"sent": "a@b.c"} for one in ended)
