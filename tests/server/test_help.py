"""`--help` of both command lines at the width of a terminal."""

from __future__ import annotations

import re

import pytest
import typer
from typer.testing import CliRunner

from jobline_server import serving
from jobline_server.cli import plain, register
from jobline_server.cli.described import flag_of, metavar_of, shown_default
from jobline_server.cli.dev import SHOWN_DEFAULTS
from jobline_server.config import Settings

WIDTH = 80


def help_of_serve(command: str) -> str:
    """What `jobline serve --help` prints."""
    app = typer.Typer()
    register(app)
    return CliRunner(env={"COLUMNS": str(WIDTH)}).invoke(app, [command, "--help"]).output


def help_of_module(capsys: pytest.CaptureFixture[str]) -> str:
    """What `python -m jobline_server --help` prints."""
    with pytest.raises(SystemExit) as ended:
        plain.serve(["--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", ["serve", "dev", "python -m"])
def test_help_reads_well_at_80_columns(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial D1: every flag in full, each with its default, no line longer than the terminal."""
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    text = help_of_module(capsys) if command == "python -m" else help_of_serve(command)
    words = re.sub(r"\s+", " ", text)

    assert max(map(len, text.splitlines())) <= WIDTH
    for name, info in Settings.model_fields.items():
        assert re.search(rf"{flag_of(name)}[ ,]", words), name
        own = SHOWN_DEFAULTS if command == "dev" else {}
        assert f"Default: {own.get(name, shown_default(info))}." in words, name
    assert ("jobline-data" in words) is (command != "dev"), "where serve keeps its store"
    assert "…-" not in text, "nothing is cut"


def test_both_take_the_same_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trial D1: switches too, with and without `--no-`."""
    ran: list[Settings] = []

    def run(settings: Settings) -> int:
        ran.append(settings)
        return 0

    monkeypatch.setattr(serving, "run", run)
    monkeypatch.setenv("GRPC_VERBOSITY", "NONE")  # which it would set

    assert plain.serve(["--accept-loss", "--no-uvloop", "--shards", "2"]) == 0

    assert (ran[0].accept_loss, ran[0].uvloop, ran[0].shards) == (True, False, 2)


@pytest.mark.parametrize("flag", ["--data", "--unix-socket"])
def test_an_empty_path_is_not_the_current_directory(flag: str) -> None:
    """Trial D3: `--data ''` is refused, an empty socket is none; neither is `.`."""
    app = typer.Typer()
    register(app)
    result = CliRunner().invoke(app, ["serve", flag, "", "--shards", "-1"])

    assert result.exit_code == 2
    assert ("data: must name a directory" in result.output) == (flag == "--data")


@pytest.mark.parametrize("command", ["serve", "python -m"])
def test_what_most_set_comes_first(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Of all flags: the directory, and the addresses of the ports."""
    text = help_of_module(capsys) if command == "python -m" else help_of_serve(command)
    flags = re.findall(r"^  (--[a-z-]+)", text, re.MULTILINE)
    flags = [flag for flag in flags if flag not in {"--config", "--help"}]
    assert flags[:3] == ["--data", "--listen", "--http"]
    assert len(flags) == len(set(flags)) == len(Settings.model_fields)


@pytest.mark.parametrize(
    ("name", "placeholder"),
    [
        ("listen", "HOST:PORT"),
        ("http", "HOST:PORT"),
        ("health_listen", "HOST:PORT"),
        ("history", "DIR|URL"),
        ("backup_to", "DIR|URL"),
        ("http_cors_origins", "ORIGINS"),
        ("auth", "PATH"),
        ("shards", "N"),
        ("max_payload_bytes", "SIZE"),
        ("drain_seconds", "SECONDS"),
    ],
)
def test_a_placeholder_says_what_a_setting_takes(name: str, placeholder: str) -> None:
    assert metavar_of(name, Settings.model_fields[name]) == placeholder


def test_a_text_is_no_number() -> None:
    """Each `N` is one."""
    for name, info in Settings.model_fields.items():
        if metavar_of(name, info) == "N":
            assert info.annotation is not str, name
