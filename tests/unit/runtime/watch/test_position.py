"""Tokens of positions: what is written is read again, and nothing else is."""

from __future__ import annotations

import pytest

from jobline_server.runtime.watch.position import BadToken, Position, parse


@pytest.mark.parametrize(
    "token", ["1.44.7.3.9", "1.44.7.3:20.9", "1.44.7.3.9@1+20", "1.44.7.3.9@+2"]
)
def test_token_is_read_as_it_was_written(token: str) -> None:
    """The forms that the module describes."""
    found = parse(token, 3)
    assert (found.life, found.number, found.offsets) == (1, 44, [7, 3, 9])
    assert found.partly == ({1: 20} if "20" in token else {})
    assert found.skip == (2 if "@+2" in token else 0)


def test_parts_of_a_run_add_up() -> None:
    """Who was told of a run appends how far it came."""
    assert parse("1.44.7@0+20+3", 1).partly == {0: 23}


def test_token_of_offsets_alone_is_of_an_earlier_life() -> None:
    """An older version counted offsets only."""
    assert parse("7.3", 2) == Position(0, 0, [7, 3])


@pytest.mark.parametrize(
    "token", ["", "x", "1.44", "1.44.7.3", "1.44.-7", "1.44.7:", "1.44.7@5+1", "1.44.7@0+x", "²"]
)
def test_other_text_is_refused(token: str) -> None:
    """Of one shard."""
    with pytest.raises(BadToken):
        parse(token, 1)


def test_batch_that_is_passed_is_not_sent_again() -> None:
    """What was sent of it in part counts no more; a batch in no journal moves no offset."""
    position = parse("1.44.7:20@+2", 1)
    assert (position.sent_of(0, written=True), position.sent_of(0, written=False)) == (20, 2)
    position.pass_batch(0, 7, written=False)
    assert position.token() == "1.45.7:20"
    position.pass_batch(0, 8, written=True)
    assert position.token() == "1.46.8"
    assert position.token_within(0, 3, written=True) == "1.46.8@0+3"
    assert position.token_within(0, 3, written=False) == "1.46.8@+3"
