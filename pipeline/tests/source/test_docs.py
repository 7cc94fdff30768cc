"""The examples of docs/pipeline-source.md, run in order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from jobline import Client
from tests.source.conftest import Server

PAGE = Path(__file__).parents[3] / "docs" / "pipeline-source.md"


def test_the_examples_run(spark: SparkSession, own_server: Server) -> None:
    """What they write is there; the stream has the columns of events."""
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        exec(block.replace("localhost:7070", own_server.address), names)
    with Client(own_server.address) as client:
        (first, _) = client.jobs.list(queue="mail", include_payloads=True)
        assert first.name == "welcome"
    assert names["stream"].isStreaming
    assert "state_before" in names["stream"].columns
