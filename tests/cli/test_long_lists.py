"""Lists of many things: shown a thousand rows at a time, as one table."""

from __future__ import annotations

import itertools

import pytest

from jobline.cli import output
from jobline.cli.output import Column, Output

COLUMNS: list[Column[int]] = [Column("number", str, right=True)]


@pytest.mark.parametrize("count", [1, 3, 4, 7])
def test_a_long_list_has_its_titles_once(capsys, monkeypatch, count):
    monkeypatch.setattr(output, "_ROWS", 3)
    assert Output(as_json=False).items(iter(range(count)), int, COLUMNS) == count
    titles, *rows = capsys.readouterr().out.split()
    assert titles == "number"
    assert rows == [str(number) for number in range(count)]


def test_the_first_rows_come_before_the_last_are_known(capsys, monkeypatch):
    """A million jobs were in memory, and nothing was said for minutes."""
    monkeypatch.setattr(output, "_ROWS", 3)
    numbers = itertools.count()

    def endless():
        for number in numbers:
            if number == 7:
                raise KeyboardInterrupt
            yield number

    with pytest.raises(KeyboardInterrupt):
        Output(as_json=False).items(endless(), int, COLUMNS)
    assert capsys.readouterr().out.split() == ["number", "0", "1", "2", "3", "4", "5"]
