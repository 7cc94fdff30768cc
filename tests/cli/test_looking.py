"""Commands that look at the server: stats, workers, tail, doctor; and dev, help."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from jobline import Client, FailAction
from jobline.cli import findings
from jobline.cli.exit_codes import MEANINGS, Exit, code_of
from jobline.cli.findings import failed
from jobline.errors import (
    DiskFull,
    Internal,
    InvalidArgument,
    JobNotFound,
    OutcomeUnknown,
    PermissionDenied,
    Unavailable,
)
from jobline.v1 import job_service_pb2
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from tests.cli.test_commands import push


def test_stats_count_what_was_pushed(jobline, queue):
    before = jobline("stats", "--json").document["pushed_total"]
    jobline("push", queue, "x", "--count", 3)
    after = jobline("stats", "--json").document
    assert after["pushed_total"] == before + 3
    assert len(after["shards"]) == 8
    assert "commits" in jobline("stats").out


def test_nobody_works_says_how_to_start(jobline):
    ended = jobline("worker", "ls")
    assert ended.code == Exit.OK
    assert "jobline work" in ended.err


def test_an_error_of_many_lines_is_one_line_of_a_list(jobline, queue, served):
    """Trial D10: newlines in an error do not break `dead ls`."""
    push(jobline, queue, "x")
    with Client(served["grpc"]) as client:
        (leased,) = client.pull(queue)
        client.fail(leased, "first line\nsecond\tline", then=FailAction.DEAD)
    (head, row) = jobline("dead", "ls", f"queue:{queue}").out.splitlines()
    assert head.split()[0] == "id"
    assert "first line second line" in row


def test_a_finding_stands_apart_from_its_name():
    """Trial D10: the longest name of a check is not glued to what was found."""
    line = findings.line_of(failed("push and work", "it failed", "")).plain
    assert "push and work it failed" in line


def started(command):
    """A server in a process of its own, and where it is reached."""
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    return server, json.loads(server.stdout.readline())["grpc"]


def wait_line(lines, is_it):
    """Reads up to a line; the process must not end before."""
    assert any(is_it(line) for line in lines)


def test_tail_goes_on_after_a_token(jobline, queue, served):
    command = [sys.executable, "-m", "jobline.cli", "tail", queue, "--json"]
    command += ["--server", served["grpc"], "--resume", token_of_now(served["grpc"])]
    tail = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert tail.stdout is not None
    try:
        push(jobline, queue, "x")
        event = json.loads(tail.stdout.readline())
        assert event["kind"] in {"PUSHED", "QUEUE_CREATED"}
        tail.send_signal(signal.SIGINT)
        assert tail.wait() == Exit.INTERRUPTED
    finally:
        tail.kill()
    push(jobline, queue, "after")
    resumed = jobline("tail", queue, "--resume", event["resume_token"], "--limit", 1, "--json")
    assert resumed.document["queue"] == queue
    assert "pushed" in jobline("tail", queue, "--resume", event["resume_token"], "-n", 1).out
    assert jobline("tail", "--kind", "nonsense").code == Exit.USAGE


def token_of_now(address):
    """Where a watch that has just begun goes on."""
    with Client(address) as client:
        watch = JobServiceStub(client.channel).Watch(job_service_pb2.WatchRequest())
        begun = next(watch)
        watch.cancel()
    return begun.resume_token


def test_doctor_finds_a_well_server_well(jobline):
    ended = jobline("doctor", "--json")
    found = {finding["what"]: finding for finding in ended.lines}
    assert ended.code == Exit.OK, found
    assert found["health"]["found"] == "SERVING"
    assert found["durable push"]["health"] == "fine"
    assert "hand-out" in found
    assert "clock" in found
    assert jobline("queue", "get", "jobline.doctor").code == Exit.NOT_FOUND


def test_doctor_pushes_nothing_if_told_so(jobline):
    found = [finding["what"] for finding in jobline("doctor", "--read-only", "--json").lines]
    assert "durable push" not in found


def test_doctor_says_what_to_do_when_nobody_listens(jobline):
    ended = jobline("doctor", server="127.0.0.1:1")
    assert ended.code == Exit.FAILED
    assert "jobline serve" in ended.out


def test_dev_prints_lines_that_work(tmp_path):
    command = [sys.executable, "-m", "jobline.cli", "dev", "--data", str(tmp_path / "data")]
    command += ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    dev = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert dev.stdout is not None
    try:
        shown = [dev.stdout.readline() for _ in range(7)]
        pasted = next(line for line in shown if "jobline push" in line).split(maxsplit=1)[1]
        pasted = pasted.replace("jobline push", f"{sys.executable} -m jobline.cli push")
        ended = subprocess.run(pasted, shell=True, capture_output=True, text=True, check=False)
        assert "CREATED" in ended.stdout, ended.stderr
        assert any("/metrics" in line for line in shown)
    finally:
        dev.send_signal(signal.SIGINT)
        assert dev.wait() == 0


@pytest.mark.parametrize("command", ["serve", "dev"])
def test_server_goes_on_when_nobody_reads_its_ready_line(tmp_path, command):
    """It used to end half-way: its threads kept a process alive that served nobody."""
    words = [sys.executable, "-m", "jobline.cli", command, "--data", str(tmp_path / "data")]
    words += ["--listen", "127.0.0.1:0", "--http", "", "--log-level", "info"]
    reader, writer = os.pipe()
    os.close(reader)
    server = subprocess.Popen(words, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert server.stderr is not None
    try:
        said = [server.stderr.readline() for _ in range(2)]
        assert "the ready line could not be written" in said[0]
        assert "127.0.0.1:" in said[1]
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=20) == 0
    finally:
        server.kill()


def test_serve_refuses_what_it_cannot_apply(tmp_path):
    command = [sys.executable, "-m", "jobline.cli", "serve", "--data", str(tmp_path)]
    ended = subprocess.run(
        [*command, "--listen", "nowhere"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "listen: " in ended.stderr


def test_help_lists_every_exit_code_and_noun(jobline):
    shown = jobline("--help").out
    assert all(meaning[:30] in shown for meaning in MEANINGS.values())
    for noun in ("job", "queue", "dead", "worker", "serve", "dev", "doctor", "top", "tail"):
        assert noun in shown


def test_completion_is_offered(jobline):
    assert "--install-completion" in jobline("--help").out


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidArgument("x"), Exit.USAGE),
        (JobNotFound("x"), Exit.NOT_FOUND),
        (Unavailable("x"), Exit.UNREACHABLE),
        (DiskFull("x"), Exit.REFUSED),
        (PermissionDenied("x"), Exit.REFUSED),
        (OutcomeUnknown("x"), Exit.UNKNOWN),
        (Internal("x"), Exit.FAILED),
    ],
)
def test_each_error_has_its_exit_code(error, code):
    assert code_of(error) is code


def test_every_exit_code_has_a_meaning():
    assert set(MEANINGS) == set(Exit)


def test_missing_extra_says_how_to_get_it():
    code = "import sys; sys.modules['typer'] = None; from jobline.cli import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "in a checkout of Jobline: pip install './clients/python[cli]'" in ended.stderr
