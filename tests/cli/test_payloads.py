"""Where payloads come from, and how they are cut into calls."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from jobline.cli import payloads
from jobline.cli.exit_codes import UsageError


@pytest.fixture
def stdin(monkeypatch):
    def give(data: bytes, *, is_terminal: bool = False) -> None:
        fake = SimpleNamespace(buffer=io.BytesIO(data), isatty=lambda: is_terminal)
        monkeypatch.setattr(sys, "stdin", fake)

    return give


def test_argument_is_the_payload():
    assert payloads.single("hello", None) == b"hello"


def test_file_is_the_payload(tmp_path):
    (tmp_path / "a").write_bytes(b"\x00\xff")
    assert payloads.single(None, tmp_path / "a") == b"\x00\xff"


def test_pipe_is_the_payload(stdin):
    stdin(b"from a pipe")
    assert payloads.single(None, None) == b"from a pipe"


def test_terminal_is_not_waited_for(stdin):
    stdin(b"", is_terminal=True)
    assert payloads.single(None, None) == b""


def test_reading_of_a_terminal_is_announced(stdin, capsys):
    """A command that waits for what nobody knows to type seems to hang."""
    stdin(b"typed\n", is_terminal=True)
    assert payloads.single("-", None) == b"typed\n"
    stdin(b"one\ntwo\n", is_terminal=True)
    assert list(payloads.lines(None, None)) == [b"one", b"two"]
    stdin(b"piped")
    assert payloads.single("-", None) == b"piped"
    assert list(payloads.lines(None, None)) == []
    said = capsys.readouterr()
    assert said.err.splitlines() == [
        "reading the payload from the terminal; Ctrl-D at the start of a line ends it",
        "reading payloads from the terminal, one a line; Ctrl-D at the start of a line ends them",
    ]
    assert said.out == ""


def test_argument_and_file_do_not_go_together(tmp_path):
    with pytest.raises(UsageError):
        payloads.single("a", tmp_path / "b")


def test_missing_file_is_a_mistake(tmp_path):
    with pytest.raises(UsageError, match="cannot read"):
        payloads.single(None, tmp_path / "gone")
    with pytest.raises(UsageError, match="cannot read"):
        list(payloads.lines(None, tmp_path / "gone"))


def test_each_line_is_a_payload_and_empty_ones_are_left_out(stdin):
    stdin(b"one\r\n\ntwo\nthree")
    assert list(payloads.lines("-", None)) == [b"one", b"two", b"three"]


def test_calls_are_cut_by_number_and_by_bytes(monkeypatch):
    monkeypatch.setattr(payloads, "CALL_JOBS_MAX", 2)
    monkeypatch.setattr(payloads, "CALL_BYTES_MAX", 10)
    assert list(payloads.calls([b"a", b"b", b"c"])) == [[b"a", b"b"], [b"c"]]
    big = b"x" * 20
    assert list(payloads.calls([b"a", big, b"b"])) == [[b"a"], [big], [b"b"]]
    assert list(payloads.calls([])) == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([b'{"a":1}', b" [1]"], "application/json"),
        ([b'{"a":1}', b"text"], ""),
        ([b"42"], ""),
        ([b"{broken"], ""),
        ([], ""),
    ],
)
def test_objects_and_lists_are_json(given, expected):
    assert payloads.content_type_of(given) == expected
