"""How the exporter is made of settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobline_server import history_port
from jobline_server.config import ConfigurationError, Settings
from jobline_server.history.destination import without_credentials
from jobline_server.runtime.clock import ManualClock


def settings(path: Path, history: str) -> Settings:
    return Settings(data=path, history=history)


class Lines:
    """A log."""

    def __init__(self) -> None:
        self.fields: list[dict[str, object]] = []

    def info(self, _what: str, **fields: object) -> None:
        self.fields.append(fields)


def test_a_url_that_cannot_be_used_is_named_without_its_credentials(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        history_port.make_exporter(
            settings(tmp_path, "nowhere://me:secret@host/jobline"), ManualClock()
        )
    assert str(caught.value).startswith("history: nowhere://***@host/jobline: ")
    assert "secret" not in str(caught.value)


def test_the_log_has_the_destination_without_its_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fsspec")
    lines = Lines()
    monkeypatch.setattr(history_port, "LOG", lines)
    history_port.make_exporter(settings(tmp_path, "memory://me:secret@host/jobline"), ManualClock())
    assert lines.fields == [{"to": "memory://***@host/jobline", "files_left": 0}]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://bucket/jobline", "s3://bucket/jobline"),
        ("/var/lib/a@b", "/var/lib/a@b"),
        ("sftp://me@host/x", "sftp://***@host/x"),
        ("sftp://me:se/c@ret@host/x", "sftp://***@host/x"),
        (
            "no way to ftp://me:secret@host and ftp://host",
            "no way to ftp://***@host and ftp://host",
        ),
    ],
)
def test_credentials_are_cut_out_of_any_text(text: str, shown: str) -> None:
    assert without_credentials(text) == shown
