"""What is said when something is wrong: on the command line, with the address, with the name."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jobline.cli.exit_codes import Exit
from jobline.cli.root import build

# The last id of shard 0: as many jobs are never pushed.
NO_JOB = str((1 << 43) - 1)
KEYS = {"message", "advice", "kind", "reason", "code", "field", "retry_after"}


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("localhost", "write localhost:7070"),
        (":7171", "write localhost:7171"),
        ("localhost:99999", "a port is 1 … 65535"),
        ("localhost:http", "a port is 1 … 65535"),
    ],
)
def test_address_without_a_port_is_a_mistake(jobline, server, said):
    """GRPC would look for it at port 443."""
    ended = jobline("stats", server=server)
    assert ended.code == Exit.USAGE
    assert said in ended.err


def test_what_listens_and_is_no_server_is_not_told_to_be_started(jobline):
    """Trial B7: `jobline serve` would find its port taken."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        ended = jobline("stats", server=f"127.0.0.1:{mute.getsockname()[1]}")
    assert ended.code == Exit.UNREACHABLE
    assert "Is it a Jobline server that listens" in ended.err
    assert "Start one" not in ended.err


@pytest.mark.parametrize("server", ["127.0.0.1:1", "no-such-host.invalid:7070", "unix:/no/socket"])
def test_server_that_is_not_there_is_said_in_words(jobline, server):
    """Without the numbers of an operating system."""
    ended = jobline("stats", server=server)
    assert ended.code == Exit.UNREACHABLE
    assert f"cannot connect to {server}: " in ended.err
    assert "Errno" not in ended.err
    assert "jobline serve" in ended.err


@pytest.mark.parametrize(
    ("arguments", "said", "advice"),
    [
        (["queue", "get", "no-such-queue"], "there is no queue", "jobline queue ls"),
        (["queue", "resume", "no-such-queue"], "there is no queue", "jobline queue ls"),
        (["queue", "drain", "no-such-queue", "--yes"], "there is no queue", "jobline queue ls"),
        (["job", "get", NO_JOB], f"there is no job {NO_JOB}", "jobline job ls"),
        (["job", "explain", NO_JOB], f"there is no job {NO_JOB}", "jobline job ls"),
    ],
)
def test_what_is_not_there_is_said_with_where_to_look(jobline, arguments, said, advice):
    ended = jobline(*arguments)
    assert ended.code == Exit.NOT_FOUND
    assert ended.err.startswith(f"error: {said}")
    assert advice in ended.err
    error = json.loads(jobline(*arguments, "--json").err)["error"]
    assert set(error) == KEYS
    assert (error["reason"], error["code"]) == (error["reason"], "NOT_FOUND")


def test_mistake_of_ours_has_the_keys_of_every_error(jobline):
    ended = jobline("job", "ls", "colour:red", "--json")
    error = json.loads(ended.err)["error"]
    assert set(error) == KEYS
    assert "colour" in error["message"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["push", "--json"], Exit.USAGE),
        (["job", "wait", "abc", "--json"], Exit.USAGE),
        (["nonsense", "--json"], Exit.USAGE),
        (["push", "q", "--count", "0", "--json"], Exit.USAGE),
        (["stats", "--server", "127.0.0.1:1", "--json"], Exit.UNREACHABLE),
    ],
)
def test_programs_get_json_for_every_mistake(arguments, code):
    """Also for those that are found before a command begins."""
    ended = subprocess.run(
        [sys.executable, "-m", "jobline.cli", *arguments], capture_output=True, check=False
    )
    assert ended.returncode == code
    assert ended.stdout == b""
    assert set(json.loads(ended.stderr)["error"]) == KEYS


def test_program_that_asks_for_help_gets_it():
    """And no error of how it asked."""
    ended = subprocess.run(
        [sys.executable, "-m", "jobline.cli", "push", "--json", "--help"],
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 0
    assert b"Usage: jobline push" in ended.stdout


def test_help_keeps_the_lines_of_words_and_settings(jobline):
    """A list that runs together cannot be read."""
    words = jobline("job", "ls", "--help").out.splitlines()
    assert any("queue:mail" in line and "error:" not in line for line in words)
    settings = jobline("queue", "set", "--help").out.splitlines()
    assert any("lease:" in line and "max_attempts" not in line for line in settings)


@pytest.mark.parametrize("words", [["work"], ["top"], ["job", "wait"]])
def test_help_flows_to_the_width_of_the_terminal(words):
    """Lines of the docstring broke within the lines of the terminal."""
    shown = CliRunner(env={"COLUMNS": "80"}).invoke(build(), [*words, "--help"]).stdout
    about = shown.partition("Usage:")[2].partition("╭")[0].splitlines()
    for line, following in pairwise(about):
        if line.strip() and following.strip():
            assert len(line.rstrip()) + len(following.split()[0]) + 2 >= 79, line


@pytest.mark.parametrize("words", [["top"], ["job", "wait"]])
def test_help_shows_spans_with_their_unit(jobline, words):
    """A default of 60.0 may be anything."""
    assert not re.search(r"\d\.0]", jobline(*words, "--help").out)


def test_purge_asks_for_what_it_takes(jobline):
    """It takes no ids."""
    assert "Give filter words or --all" in jobline("dead", "purge").err


def test_help_shows_flags_without_a_type(jobline):
    shown = jobline("job", "cancel", "--help").out.splitlines()
    assert not [line for line in shown if "bool" in line and "--help" not in line]


def test_words_between_colons_are_no_pictures(jobline, queue):
    """A terminal library may know better; what a job says is shown as it says it."""
    ended = jobline("job", "ls", "older:x")
    assert "older:x: 'x' is not a time span" in ended.err
    job_id = jobline("push", queue, "say :x: twice", "--json").document["id"]
    worked = ["work", queue, "--exit-when-idle", "0.3s", "--quiet", "--result", "--", "cat"]
    assert jobline(*worked).code == Exit.OK
    assert "say :x: twice" in jobline("job", "wait", job_id).out


@pytest.mark.parametrize(
    "arguments",
    [
        ["job", "get", "9" * 30],
        ["job", "explain", "9" * 30],
        ["job", "wait", "9" * 30],
        ["job", "cancel", "9" * 30, "--yes"],
        ["dead", "retry", "9" * 30],
        ["tail", "--job", "9" * 30],
        ["job", "explain", "-1"],
        ["job", "wait", "one"],
    ],
)
def test_what_cannot_be_an_id_is_a_mistake(jobline, arguments):
    ended = jobline(*arguments)
    assert ended.code == Exit.USAGE


@pytest.mark.parametrize("arguments", [[], ["--lines"], ["--count", "2"]])
def test_key_that_is_empty_is_a_mistake(jobline, queue, arguments):
    """A variable of the shell may be; a job that is pushed again would be a second one."""
    ended = jobline("push", queue, "--key", "", *arguments, stdin=b"x")
    assert ended.code == Exit.USAGE
    assert "--job-key: is empty" in ended.err


@pytest.mark.parametrize("arguments", [["doctor"], ["job", "ls", "name:\u2713"]])
def test_terminal_of_few_characters_is_no_reason_to_fail(served, jobline, queue, arguments):
    """What it cannot show becomes `?`."""
    jobline("push", queue, "x", "--name", "\u2713")
    ended = typed(served, *arguments)
    assert ended.returncode == 0, ended.stderr
    assert "?" in ended.stdout


def test_help_does_not_fail_on_a_terminal_of_few_characters(served):
    ended = typed(served, "serve", "--help")
    assert ended.returncode == 0, ended.stderr
    assert "Run a server" in ended.stdout


def test_json_is_whole_on_a_terminal_of_few_characters(served, jobline, queue):
    jobline("push", queue, "x", "--name", "\u2713")
    ended = typed(served, "job", "ls", f"queue:{queue}", "--json")
    assert json.loads(ended.stdout)["options"]["name"] == "\u2713"


def typed(served, *arguments):
    """A command on a terminal that knows ASCII alone."""
    return subprocess.run(
        [sys.executable, "-m", "jobline.cli", *arguments],
        env=os.environ | {"PYTHONIOENCODING": "ascii", "JOBLINE_SERVER": served["grpc"]},
        capture_output=True,
        text=True,
        check=False,
    )


def test_full_disk_behind_stdout_is_said_in_a_sentence(served):
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "jobline.cli", "stats", "--server", served["grpc"]],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == Exit.FAILED
    assert ended.stderr.startswith("error: ")
    assert "No space left" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_reader_that_has_enough_is_no_failure(served):
    assert ended_unread("stats", "--server", served["grpc"]) == (Exit.OK, b"")


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["job", "ls", "--help"],
        ["serve", "--help"],
        ["--version"],
        [],
        ["job", "ls", "--json", "-h"],
    ],
)
def test_help_that_nobody_reads_on_is_no_failure(words):
    """As `jobline --help | head -3`: typer and rich would end with 1."""
    code, told = ended_unread(*words)
    assert told == b""
    assert code == Exit.OK


def test_a_mistake_is_one_whoever_reads():
    """Only what was cut short ends as if all had been read."""
    code, told = ended_unread("no-such-command")
    assert code == Exit.USAGE
    assert b"No such command" in told


def ended_unread(*words: str) -> tuple[int, bytes]:
    """How a command ends whose stdout nobody reads, and what it has said to stderr."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "jobline.cli", *words]
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    return ended.returncode, ended.stderr
