"""`jobline dev`: flags that contradict each other, or make no sense, are refused."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from jobline.cli.root import build


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--memory", "--data", "here"], "--memory keeps nothing"),
        (["--port", "0", "--listen", "127.0.0.1:0"], "--port stands for --listen"),
        (["--clock-start", "2026-03-01T09:00:00Z"], "needs --clock=manual"),
        (["--clock=manual", "--clock-start", "2026-03-01T09:00:00"], "with its zone"),
        (["--clock=manual", "--clock-start", "soon"], "with its zone"),
        (["--clock=manual", "--clock-start", "1999-03-01T09:00:00Z"], "must be in 2025"),
        (["--clock=sundial"], "sundial"),
    ],
)
def test_refused(flags: list[str], said: str) -> None:
    result = CliRunner().invoke(build(), ["dev", *flags])
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
