"""All vectors, through the shipped Python client, against a real server."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from tests.conformance.runner import Servers, run_vector
from tests.conformance.vectors import Mismatch, load


@pytest.mark.parametrize("vector", load(), ids=lambda vector: vector["name"])
def test_a_vector_holds(vector: dict[str, Any], runs: dict[str, Future[None]]) -> None:
    runs[vector["name"]].result()


@pytest.mark.parametrize("vector", load("must_fail.yaml"), ids=lambda vector: vector["name"])
def test_a_runner_notices_what_is_wrong(vector: dict[str, Any], servers: Servers) -> None:
    """One that matched anything would pass all the vectors above."""
    with pytest.raises(Mismatch):
        run_vector(vector, servers)
