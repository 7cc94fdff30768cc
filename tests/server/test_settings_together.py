"""Settings that do not go together: each is allowed by itself."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml

from jobline_server.config import ConfigurationError, load_settings
from jobline_server.setting_partners import PARTNERS

CHART = Path(__file__).parents[2] / "deploy/helm/jobline/README.md"


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the machine plays a part."""
    for name in list(os.environ):
        if name.startswith("JOBLINE_"):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            {"ballast_bytes": "1MiB"},
            "max_payload_bytes 10 MiB needs ballast_bytes of at least 28 MiB (it is 1 MiB), or 0",
        ),
        (
            {"max_payload_bytes": "64MiB"},
            "max_payload_bytes 64 MiB needs ballast_bytes of at least 136 MiB (it is 64 MiB), or 0",
        ),
        (
            {"history": "h", "history_file_bytes": "2MiB", "history_spool_bytes": "1MiB"},
            "history_file_bytes: at most the 1 MiB of history_spool_bytes",
        ),
    ],
)
def test_sizes_that_do_not_fit_stop_the_start(flags: dict[str, object], said: str) -> None:
    """The error names both settings (G22)."""
    with pytest.raises(ConfigurationError) as caught:
        load_settings(flags)
    assert str(caught.value).removesuffix(" for none") == said


def test_the_example_of_the_chart_is_taken() -> None:
    """The server of the first one refused to start."""
    (example,) = re.findall(r"```yaml\n(config:.*?)```", CHART.read_text(), re.DOTALL)
    given = yaml.safe_load(example)["config"]
    assert load_settings(given).max_payload_bytes == 64 << 20


GIVEN = {
    "backup_every_seconds": "3600",
    "backup_keep": "5",
    "history_seconds": "60",
    "history_file_bytes": "1MiB",
    "history_spool_bytes": "1GiB",
    "client_burst": "10",
    "http_cors_origins": "*",
}
PARTNER_VALUES = {"backup_to": "b", "history": "h", "client_rate": "5", "http": "127.0.0.1:0"}
WITHOUT = {"http": ""}


@pytest.mark.parametrize("name", PARTNERS)
def test_one_that_needs_another_is_refused_without_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was ignored in silence; given by a flag, a variable or the file."""
    partner, value = PARTNERS[name], GIVEN[name]
    said = f"{name}: does nothing without {partner}: set both, or leave it out"
    file = tmp_path / "jobline.toml"
    file.write_text(f'{name} = "{value}"\n')
    with pytest.raises(ConfigurationError) as of_flag:
        load_settings({name: value} | WITHOUT)
    with pytest.raises(ConfigurationError) as of_file:
        load_settings(WITHOUT, file)
    monkeypatch.setenv(f"JOBLINE_{name}".upper(), value)
    with pytest.raises(ConfigurationError) as of_variable:
        load_settings(WITHOUT)
    assert [str(each.value) for each in (of_flag, of_file, of_variable)] == [said] * 3
    load_settings({partner: PARTNER_VALUES[partner]})


def test_what_asks_for_nothing_needs_no_other() -> None:
    """The defaults of the others are no reason, and neither is a 0 that says that there is none."""
    nothing = {"backup_every_seconds": 0, "backup_keep": 0, "client_burst": 0}
    load_settings(nothing | {"http": "", "http_cors_origins": ""})
