"""`jobline dev`: a server to try things, which uses the settings it is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from jobline_server import serving
from jobline_server.cli.dev import SHOWN_DEFAULTS, dev
from jobline_server.config import Settings


@pytest.fixture
def settings_of_dev(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What a server would be run with."""

    def settings(config: Path | None = None, **given: Any) -> Settings:
        ran: list[Settings] = []

        def run(settings: Settings, _announce: object, **_more: object) -> int:
            ran.append(settings)
            return 0

        monkeypatch.setattr(serving, "run", run)
        with pytest.raises(typer.Exit):
            dev(config=config, given=given)
        return ran[0]

    return settings


def test_it_is_for_trying_things(settings_of_dev: Any) -> None:
    settings = settings_of_dev()
    assert (settings.log_format, settings.drain_seconds) == ("console", 2)
    assert not settings.data.exists()


def test_its_help_names_the_defaults_that_it_has(settings_of_dev: Any) -> None:
    """Those of `serve` are not its own."""
    settings, served = settings_of_dev(), Settings()
    for name in Settings.model_fields:
        if getattr(settings, name) != getattr(served, name):
            assert name in SHOWN_DEFAULTS, name
    told = (settings.log_level, settings.log_format, f"{settings.drain_seconds:g}")
    assert told == tuple(
        SHOWN_DEFAULTS[name] for name in ("log_level", "log_format", "drain_seconds")
    )


def test_what_somebody_has_set_wins(
    settings_of_dev: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a flag, in the environment or in a file."""
    file = tmp_path / "jobline.toml"
    file.write_text('log_format = "json"\ndata = "here"\n')
    monkeypatch.setenv("JOBLINE_LISTEN", "127.0.0.1:7199")
    settings = settings_of_dev(file, drain_seconds="9")
    assert (settings.log_format, settings.data) == ("json", Path("here"))
    assert (settings.listen, settings.drain_seconds) == ("127.0.0.1:7199", 9)
