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
    assert checked.stdout == "1 key, 0 issuers, 0 certificates, 1 role\n"
    assert key not in done.stderr


NAMES = "must be 1 to 128 of A-Z a-z 0-9 . _ @ + -, the first a letter or digit"
MOMENT = "must be a date and a time with its zone, such as 2027-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["a b", "--role", "r"], f'NAME "a b": {NAMES}'),
        (['a b"c', "--role", "r"], f'NAME "a b"c": {NAMES}'),
        (["shop", "--role", ""], f'--role "": {NAMES}'),
        (["shop", "--role", "r", "--role", 'r"]\nx = ["'], f'--role "r"]\nx = ["": {NAMES}'),
        (["shop", "--role", "r", "--expires", "tomorrow"], f'--expires "tomorrow": {MOMENT}'),
        (["shop", "--role", "r", "--expires", "2020-01-01"], f'--expires "2020-01-01": {MOMENT}'),
    ],
)
def test_what_is_wrong_is_named_by_its_option(
    app: typer.Typer, tmp_path: Path, asked: list[str], said: str
) -> None:
    """And not by a line of a file that there is not yet; the file stays as it was."""
    file = tmp_path / "auth.toml"
    file.write_text(ROLE)
    for more in ([], ["--into", str(file)]):
        done = CliRunner().invoke(app, ["auth", "new-key", *asked, *more])
        assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"{said}\n")
    assert file.read_text() == ROLE


@pytest.mark.parametrize("end", ["\n", ""])
def test_a_key_is_added_to_a_file(app: typer.Typer, tmp_path: Path, end: str) -> None:
    """The key alone is on stdout, and what goes wrong is on the terminal."""
    file = tmp_path / "auth.toml"
    file.write_text(ROLE.removesuffix("\n") + end)
    for name in ("shop", "till"):
        asked = ["auth", "new-key", name, "--role", "producer", "--into", str(file)]
        done = CliRunner().invoke(app, asked)
        assert API_KEY.fullmatch(done.stdout.strip())
        assert hash_of(done.stdout.strip()) in file.read_text()
        assert done.stderr == f"{name} was added to {file}\n"
    checked = CliRunner().invoke(app, ["auth", "check", str(file)])
    assert checked.stdout == "2 keys, 0 issuers, 0 certificates, 1 role\n"


@pytest.mark.parametrize(
    ("name", "role", "said"),
    [
        ("shop", "producer", "shop"),
        ("till", "worker", "there is no role worker"),
    ],
)
def test_a_key_that_the_file_would_not_take_is_not_added(
    app: typer.Typer, tmp_path: Path, name: str, role: str, said: str
) -> None:
    """Given one with a key of that name, or without that role."""
    file = tmp_path / "auth.toml"
    file.write_text(ROLE)
    first = ["auth", "new-key", "shop", "--role", "producer", "--into", str(file)]
    assert CliRunner().invoke(app, first).exit_code == 0
    before = file.read_text()
    done = CliRunner().invoke(app, ["auth", "new-key", name, "--role", role, "--into", str(file)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"--into {file}: ")
    assert said in done.stderr
    assert file.read_text() == before


def test_a_file_that_is_not_there_is_not_made(app: typer.Typer, tmp_path: Path) -> None:
    """It would have no roles."""
    file = tmp_path / "none.toml"
    done = CliRunner().invoke(app, ["auth", "new-key", "a", "--role", "r", "--into", str(file)])
    said = f"--into {file}: no such file: write one with the roles first\n"
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", said)


def test_a_key_that_has_ended_is_warned_of(app: typer.Typer, tmp_path: Path) -> None:
    """In a comment: where stderr is the file, it is taken all the same."""
    asked = ["auth", "new-key", "shop", "--role", "producer", "--expires", "2020-01-01T00:00:00Z"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0
    said = "# --expires 2020-01-01T00:00:00Z is over: a server will refuse this key\n"
    assert done.stderr.startswith(said)
    file = tmp_path / "auth.toml"
    file.write_text(ROLE + done.stderr)
    assert CliRunner().invoke(app, ["auth", "check", str(file)]).exit_code == 0


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


ISSUER = (
    '[[jwt]]\nissuer = "https://id.example"\naudience = "jobs"\nalgorithms = ["RS256"]\n'
    'jwks_file = "keys.json"\n'
)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (None, "no such file or directory"),
        ("no JSON", "is no JSON Web Key Set"),
        ('{"keys": []}', "has no public key for signatures"),
        ('{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}', "has no public key for signatures"),
    ],
)
def test_the_keys_of_an_issuer_are_read(
    app: typer.Typer, tmp_path: Path, keys: str | None, said: str
) -> None:
    """A server does not start with such a file of keys, so the check may not pass it either."""
    file = tmp_path / "auth.toml"
    file.write_text(ISSUER)
    if keys is not None:
        (tmp_path / "keys.json").write_text(keys)
    done = CliRunner().invoke(app, ["auth", "check", str(file)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"jwt (jwt).jwks_file: {tmp_path / 'keys.json'}: {said}")


def test_certificates_need_an_authority(app: typer.Typer, tmp_path: Path) -> None:
    """The file is right by itself, and a server without one does not start with it."""
    file = tmp_path / "auth.toml"
    file.write_text(f'{ROLE}[[certificates]]\nname = "shop.example"\nroles = ["producer"]\n')
    done = CliRunner().invoke(app, ["auth", "check", str(file)])
    assert done.exit_code == 0
    assert done.stdout.startswith("0 keys, 0 issuers, 1 certificate, 1 role\n")
    assert done.stderr == (
        "certificates count only where the server has tls_client_ca (chart: tls.clientCa); "
        "without it, it does not start with this file\n"
    )
