"""The page of metrics is made once for all who ask at the same time, and not by the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry, Gauge

from jobline_server.web import metrics_page
from jobline_server.web.metrics_page import MetricsPage

OPEN = "application/openmetrics-text; version=1.0.0"


class Counted:
    """A page whose refreshes are counted, and wait until they may go on."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self.gauge = Gauge("refreshes", "How many.", registry=registry)
        self.may_go = asyncio.Event()
        self.begun = asyncio.Event()
        self.count = 0
        self.page = MetricsPage(registry, self.refresh)

    async def refresh(self) -> None:
        """Counts, and waits."""
        self.count += 1
        self.gauge.set(self.count)
        self.begun.set()
        await self.may_go.wait()

    async def asked(self, times: int, accept: str = "") -> list[asyncio.Task[tuple[bytes, str]]]:
        """Returns callers that wait for the page."""
        tasks = [asyncio.create_task(self.page.make(accept)) for _ in range(times)]
        await self.begun.wait()
        return tasks


async def test_a_crowd_gets_one_page() -> None:
    """Given 200 scrapes at once of a server with 10,000 queues, pushes waited for half a minute."""
    counted = Counted()
    crowd = await counted.asked(200)
    counted.may_go.set()
    assert {page for page, _ in await asyncio.gather(*crowd)} == {
        b"# HELP refreshes How many.\n# TYPE refreshes gauge\nrefreshes 1.0\n"
    }
    assert counted.count == 1


async def test_who_asks_later_gets_a_newer_page() -> None:
    counted = Counted()
    counted.may_go.set()
    await counted.page.make("")
    assert b"refreshes 2.0" in (await counted.page.make(""))[0]


async def test_a_caller_that_goes_away_takes_no_page_from_others() -> None:
    """The first one, for whom it was begun."""
    counted = Counted()
    first, second = await counted.asked(2)
    first.cancel()
    counted.may_go.set()
    assert b"refreshes 1.0" in (await second)[0]


async def test_formats_have_pages_of_their_own() -> None:
    counted = Counted()
    (plain,), (opened,) = await counted.asked(1), await counted.asked(1, OPEN)
    counted.may_go.set()
    assert (await plain)[1].startswith("text/plain")
    page, content_type = await opened
    assert content_type.startswith("application/openmetrics-text")
    assert page.endswith(b"# EOF\n")


async def test_a_page_that_fails_is_made_anew() -> None:
    """Each who waited for it is told, and nothing of it stays."""

    async def fails() -> None:
        raise RuntimeError("no counts")

    page = MetricsPage(CollectorRegistry(), fails)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no counts"):
            await page.make("")


async def test_the_text_is_made_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop stood still for a tenth of a second with each scrape of 100 queues."""
    threads: list[int] = []

    def chosen(_accept: str) -> tuple[Callable[[CollectorRegistry], bytes], str]:
        def encode(_registry: CollectorRegistry) -> bytes:
            threads.append(threading.get_ident())
            return b""

        return encode, "text/plain"

    monkeypatch.setattr(metrics_page, "choose_encoder", chosen)
    counted = Counted()
    counted.may_go.set()
    await counted.page.make("")
    assert threads != [threading.get_ident()]
    assert len(threads) == 1
