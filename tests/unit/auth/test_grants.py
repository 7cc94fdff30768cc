"""Globs and roles."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from jobline_server.auth.grants import ANSWERS_MAX, MANAGE, PUSH, READ, Grants, matches

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


def test_answers_that_are_kept_are_bounded() -> None:
    grants = Grants([(PUSH, ["mail-*"])])
    for number in range(3 * ANSWERS_MAX):
        assert grants.may(PUSH, f"mail-{number}")
        assert len(grants._answers) <= ANSWERS_MAX
