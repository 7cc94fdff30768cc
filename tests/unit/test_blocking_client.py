"""The blocking client is what `scripts/blocking_client.py` makes of the async one."""

from __future__ import annotations

import pytest

from scripts import blocking_client


def blocking(source: str) -> str:
    return blocking_client.blocking(source, set())


def test_the_blocking_client_is_up_to_date():
    """Each file of `_blocking` that is not written by hand is generated from its twin."""
    assert blocking_client.drift(blocking_client.generated()) == []


@pytest.mark.parametrize(
    ("awaited", "expected"),
    [
        ("async def get(self) -> Job:", "def get(self) -> Job:"),
        ("return await self.get(await token())", "return self.get(token())"),
        ("async with closing(ends) as found:", "with closing(ends) as found:"),
        ("    async for page in pages:", "    for page in pages:"),
        ("-> AsyncGenerator[JobEnd, None]:", "-> Iterator[JobEnd]:"),
        ("fetch: Callable[[str], Awaitable[Page]]", "fetch: Callable[[str], Page]"),
        ("class AsyncClient(Producer):", "class Client(Producer):"),
        ("`async with` closes it.", "`with` closes it."),
        ("pb_grpc.QueueServiceAsyncStub", "pb_grpc.QueueServiceStub"),
        (
            "from jobline._asynchronous.pages import pages_of",
            "from jobline._blocking.pages import pages_of",
        ),
    ],
)
def test_async_words_go(awaited, expected):
    """Keywords, types and names of asyncio become those of threads, in code and in docstrings."""
    assert blocking(awaited) == expected


@pytest.mark.parametrize("source", ["is_async = True", "unawaited = 1", "through = 1"])
def test_other_words_stay(source):
    """A rule matches from the start of a word."""
    assert blocking(source) == source


def test_text_that_is_true_of_one_client_is_replaced():
    """The table of texts comes first, as its entries contain words that rules change."""
    said = blocking("`await` it.\nPushes made at the same time share one call")
    assert said.endswith("Pushes that threads make at the same time share one call")


def test_imports_that_are_left_over_go_and_loops_become_yield_from():
    """Ruff does the rest."""
    source = "import asyncio\nimport os\n\n\ndef f():\n    for x in os.environ:\n        yield x\n"
    path = blocking_client.TARGET / "x.py"
    expected = "import os\n\n\ndef f():\n    yield from os.environ\n"
    assert blocking_client.formatted(source, path) == expected


def test_a_rule_that_matches_nothing_is_an_error(monkeypatch):
    """What it was for has gone."""
    monkeypatch.setitem(blocking_client.RULES, "no_such_word", "")
    with pytest.raises(ValueError, match="no_such_word"):
        blocking_client.generated()


def test_drift_is_shown_as_a_diff():
    """It names the file that was changed by hand."""
    files = blocking_client.generated()
    files["pages.py"] += "changed = True\n"
    lines = blocking_client.drift(files)
    assert "+changed = True" in lines
    assert any("pages.py" in line for line in lines)
