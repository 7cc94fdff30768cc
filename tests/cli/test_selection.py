"""Which jobs a command means: ids or words, never a guess."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from jobline._filter_words import parse
from jobline._filters import JobFilter
from jobline.cli.exit_codes import UsageError
from jobline.cli.selection import choose, needs_ids

NOW = datetime(2026, 1, 31, 18, 0, tzinfo=UTC)


def test_what_a_filter_of_jobs_cannot_say_needs_ids():
    assert needs_ids(parse(["reason:stalled"], NOW))
    assert not needs_ids(parse(["queue:mail"], NOW))


def test_words_choose_by_a_filter():
    assert choose(["queue:a"], everything=False, now=NOW).where == JobFilter(queue="a")


def test_numbers_are_ids_without_repeats():
    assert choose(["7", "5", "7"], everything=False, now=NOW).ids == (7, 5)


@pytest.mark.parametrize(
    ("words", "everything", "said"),
    [([], False, "which jobs"), (["7", "queue:a"], False, "one kind"), (["7"], True, "--all")],
)
def test_a_choice_is_never_guessed(words, everything, said):
    with pytest.raises(UsageError, match=said):
        choose(words, everything=everything, now=NOW)


def test_all_is_an_empty_choice():
    assert choose(None, everything=True, now=NOW).where is None
