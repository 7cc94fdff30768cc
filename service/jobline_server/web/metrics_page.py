"""Makes the page of metrics: once for all who ask at the same time.

A page of 100 queues is a tenth of a second of work, most of it text. Nobody needs one that is a
moment newer: who asks while a page is made gets that page, so a crowd of scrapers takes no more of
the loop than one. The text is made in a thread, or the loop would stand still for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder


@dataclass(frozen=True, slots=True)
class _Collected:
    """Metrics at one moment, as an encoder takes them."""

    metrics: list[Metric]

    def collect(self) -> Iterable[Metric]:
        """Returns them."""
        return self.metrics


class MetricsPage:
    """The page. `refresh` updates the metrics of the registry, which are read in the loop."""

    def __init__(self, registry: CollectorRegistry, refresh: Callable[[], Awaitable[None]]) -> None:
        self._registry = registry
        self._refresh = refresh
        # Of each format: there are a few.
        self._under_way: dict[str, asyncio.Task[bytes]] = {}
        self._reading = asyncio.Lock()

    async def make(self, accept: str) -> tuple[bytes, str]:
        """Returns a page in a format that the caller accepts, and its content type."""
        encode, content_type = choose_encoder(accept)
        page = self._under_way.get(content_type)
        if page is None:
            page = asyncio.create_task(self._made(encode))
            self._under_way[content_type] = page
            page.add_done_callback(lambda _: self._under_way.pop(content_type))
        # The first who asked may go away, and the others still wait for it.
        return await asyncio.shield(page), content_type

    async def _made(self, encode: Callable[[CollectorRegistry], bytes]) -> bytes:
        async with self._reading:
            await self._refresh()
            metrics: list[Metric] = []
            for metric in self._registry.collect():
                metrics.append(metric)
                await asyncio.sleep(0)  # noqa: TID251  # it does not wait
        collected: Any = _Collected(metrics)  # all that encoders read
        return await asyncio.to_thread(encode, collected)
