"""Options before their command, and values of them that are wrong."""

from __future__ import annotations

import pytest

from jobline.cli.exit_codes import Exit


@pytest.mark.parametrize(
    ("words", "right"),
    [
        ("-s localhost:7070 stats", "jobline stats -s HOST:PORT"),
        ("--server localhost:7070 queue ls", "jobline queue ls --server HOST:PORT"),
        ("queue -s localhost:7070 ls", "jobline queue ls -s HOST:PORT"),
        ("--json queue", "jobline queue COMMAND --json"),
        ("--json", "jobline COMMAND --json"),
        ("--kind dead tail", "jobline tail --kind KIND"),
        ("dead --yes purge", "jobline dead purge --yes"),
    ],
)
def test_an_option_before_its_command_is_told_where_it_belongs(jobline, words, right):
    ended = jobline(*words.split())
    assert ended.code == Exit.USAGE
    said = " ".join(ended.err.replace("\u2502", " ").split())
    assert f"No such option: {next(w for w in words.split() if w[0] == '-')}. It belongs" in said
    assert f"after the command: {right}" in said


def test_an_option_that_nothing_has_gets_no_such_hint(jobline):
    ended = jobline("--colour", "stats")
    assert ended.code == Exit.USAGE
    assert "belongs" not in ended.err


@pytest.mark.parametrize(
    "words",
    [
        "generate --lang cobol",
        "dev --clock sundial",
        "job ls -n many",
        "job ls -n -1",
        "push q x --count 0",
        "push q x --priority high",
        "push q x --delay soon",
        "work q -c 0 -- true",
        "inspect /none -n x",
        "queue set q max_attempts=x",
        "bench -n x",
        "serve --shards many",
    ],
)
def test_a_wrong_value_is_named_without_words_of_a_library(jobline, words):
    ended = jobline(*words.split())
    assert ended.code == Exit.USAGE
    for word in ("Value error", "Input should", "ValidationError", "pydantic"):
        assert word not in ended.err
