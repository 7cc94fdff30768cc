"""A settings file with a mistake, beside variables of the client."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobline_server.config import ConfigurationError, load_settings


def test_a_mistake_in_the_file_tells_nothing_of_the_clients_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them is its token."""
    monkeypatch.setenv("JOBLINE_TOKEN", "top secret")
    file = tmp_path / "jobline.toml"
    file.write_text('token = "x"')
    with pytest.raises(ConfigurationError, match=r"^token: no such setting") as raised:
        load_settings({}, file)
    assert "top secret" not in str(raised.value)
    assert str(file) in str(raised.value)
