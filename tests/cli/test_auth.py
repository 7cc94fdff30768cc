"""`jobline auth`."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from jobline_server.auth.api_keys import API_KEY, hash_of
from jobline_server.cli.auth import register

ROLE = '[[roles.producer]]\nqueues = ["mail-*"]\nverbs = ["push"]\n'


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer()
    register(made)
    return made


def test_a_new_key_and_its_lines(app: typer.Typer, tmp_path: Path) -> None:
    """The key alone is on stdout; the lines are those that the file takes."""
    asked = ["auth", "new-key", "shop", "--role", "producer", "--expires", "2099-01-01T00:00:00Z"]
    done = CliRunner().invoke(app, asked)
    key = done.stdout.strip()
    assert API_KEY.fullmatch(key)
    assert hash_of(key) in done.stderr
    file = tmp_path / "auth.toml"
    file.write_text(ROLE + done.stderr)
    checked = CliRunner().invoke(app, ["auth", "check", str(file)])
    assert checked.stdout == "1 keys, 0 issuers, 0 certificates, 1 roles\n"
    assert key not in done.stderr


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["a b", "--role", "r"], "keys[0].name: must be"),
        (["shop", "--role", "r", "--expires", "tomorrow"], "is not TOML"),
        (["shop", "--role", 'r"]\nx = ["'], "is not TOML"),
    ],
)
def test_what_the_file_would_not_take(app: typer.Typer, asked: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["auth", "new-key", *asked])
    assert done.exit_code == 2
    assert not done.stdout
    assert said in done.stderr


def test_a_wrong_file(app: typer.Typer, tmp_path: Path) -> None:
    file = tmp_path / "auth.toml"
    for text, said in (
        ("colour = 1\n", "colour: no such name"),
        ("a = " + "[" * 20_000, "is not TOML: it is nested too deeply"),
        ("a = " + "9" * 6_000, "is not TOML: a number has too many digits"),
    ):
        file.write_text(text)
        done = CliRunner().invoke(app, ["auth", "check", str(file)])
        assert done.exit_code == 2
        assert done.stderr == f"{file}: {said}\n"
