"""Settings that do not go together: each is allowed by itself."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml

from jobline_server.config import ConfigurationError, load_settings

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
            "max_payload_bytes 10 MiB needs ballast_bytes of at least 28 MiB (it is 1 MiB), or 0 "
            "for none",
        ),
        (
            {"max_payload_bytes": "64MiB"},
            "max_payload_bytes 64 MiB needs ballast_bytes of at least 136 MiB (it is 64 MiB), or 0 "
            "for none",
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
    assert str(caught.value) == said


def test_the_example_of_the_chart_is_taken() -> None:
    """The server of the first one refused to start."""
    (example,) = re.findall(r"```yaml\n(config:.*?)```", CHART.read_text(), re.DOTALL)
    given = yaml.safe_load(example)["config"]
    assert load_settings(given).max_payload_bytes == 64 << 20
