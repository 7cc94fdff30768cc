"""Globs and roles."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline_server.auth import grants as grants_module
from jobline_server.auth.grants import (
    ANSWERS_MAX,
    MANAGE,
    NAME_CHARACTERS_MAX,
    PUSH,
    READ,
    Grants,
    matches,
)
from jobline_server.rpc.validate.fields import QUEUE_NAME

NAMES = st.text(alphabet="ab.-", max_size=12)
GLOBS = st.text(alphabet="ab.-*", min_size=1, max_size=8)


@given(GLOBS, NAMES)
def test_globs_are_those_of_the_regular_expression(glob: str, name: str) -> None:
    """The slow twin: `.*` for each star."""
    pattern = ".*".join(re.escape(piece) for piece in glob.split("*"))
    assert matches(glob, name) == bool(re.fullmatch(pattern, name))


@given(GLOBS, st.lists(NAMES, min_size=9, max_size=9))
def test_a_star_takes_anything(glob: str, pieces: list[str]) -> None:
    name = "".join(part + piece for part, piece in zip(glob.split("*"), pieces, strict=False))
    assert matches(f"{glob}*", name)


def test_many_stars_are_not_slow() -> None:
    """What takes a backtracking matcher for ever."""
    assert not matches("a*" * 128 + "b", "a" * 256)


def test_what_no_role_allows_is_refused() -> None:
    grants = Grants([(PUSH, ["mail-*", "sms"]), (READ, ["*"])])
    assert grants.may(PUSH, "mail-eu")
    assert grants.may(PUSH, "sms")
    assert not grants.may(PUSH, "sms-2")
    assert not grants.may(MANAGE, "sms")
    assert grants.may(READ, "anything")
    assert grants.may_all(READ)
    assert not grants.may_all(PUSH)


def test_a_star_beside_others_is_all() -> None:
    assert Grants([(PUSH, ["mail"]), (PUSH, ["*"])]).may_all(PUSH)
    assert not Grants([(PUSH, ["**"])]).may_all(PUSH)


@given(st.lists(GLOBS, max_size=9), NAMES)
def test_many_globs_are_asked_as_one_after_the_other(globs: list[str], name: str) -> None:
    """The slow twin."""
    grants = Grants([(PUSH, globs)])
    assert grants.may(PUSH, name) == any(matches(glob, name) for glob in globs)
    assert not grants.may(READ, name)


def test_roles_with_ten_thousand_queues_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each queue of a list was compared with all of them, for five milliseconds of the loop."""
    compared: list[str] = []
    monkeypatch.setattr(grants_module, "matches", lambda glob, _name: compared.append(glob))
    globs = [f"team-{number}" for number in range(10_000)]
    globs += [f"{number:05}-*" for number in range(10_000)] + ["*-dead"]
    grants = Grants([(READ, globs)])
    for number in range(0, 10_000, 100):
        assert grants.may(READ, f"team-{number}")
        assert grants.may(READ, f"{number:05}-eu")
        assert not grants.may(READ, f"other-{number}")
    assert not compared


def test_of_a_thousand_globs_with_a_star_within_few_are_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each name was compared with all of them: a list of ten thousand queues took two seconds."""
    compared: list[str] = []

    def counted(glob: str, name: str) -> bool:
        compared.append(glob)
        return matches(glob, name)

    monkeypatch.setattr(grants_module, "matches", counted)
    globs = [f"{number:04}-*-dead" for number in range(1_000)]
    globs += [f"*-{number:04}" for number in range(1_000)]
    globs += [f"*a*.{number:04}*" for number in range(1_000)]
    grants = Grants([(READ, globs * 2)])
    assert grants.may(READ, "0007-eu-dead")
    assert grants.may(READ, "eu-0008")
    assert not grants.may(READ, "0009-eu")
    assert not grants.may(READ, "x")
    assert grants.may(READ, "a.0010.x")
    assert not grants.may(READ, "b.0011.a")
    assert compared == ["0007-*-dead", "*-0008", "0009-*-dead", "*a*.0010*", "*a*.0011*"]


def test_answers_that_are_kept_are_bounded() -> None:
    grants = Grants([(PUSH, ["mail-*"])])
    for number in range(3 * ANSWERS_MAX):
        assert grants.may(PUSH, f"mail-{number}")
        assert len(grants._answers) <= ANSWERS_MAX


def test_what_is_no_name_is_compared_with_nothing_and_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each refused call with a text of megabytes left it in memory, 4,096 of them per role."""
    compared: list[str] = []
    monkeypatch.setattr(grants_module, "matches", lambda _glob, name: compared.append(name))
    grants = Grants([(PUSH, ["a*", "*-dead"]), (READ, ["*"])])
    name = "a" * NAME_CHARACTERS_MAX
    assert QUEUE_NAME.fullmatch(name)
    assert not QUEUE_NAME.fullmatch(name + "a")
    assert grants.may(PUSH, name)
    assert len(grants._answers) == 1
    for verb in (PUSH, MANAGE):
        assert not grants.may(verb, name + "a")
    assert len(grants._answers) == 1
    assert not compared
    # Who may do it to all queues learns from the handler that this is no name.
    assert grants.may(READ, name + "a")
