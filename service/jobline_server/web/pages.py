"""The pages of the HTTP port."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

LANDING = """Jobline {version}

This port is for those who watch the server:

  /metrics   counters, for Prometheus
  /healthz   200 while the process is well
  /readyz    200 while it takes work

Jobs go over gRPC, on the other port: grpcurl -plaintext HOST:PORT list
"""


def make_pages(
    registry: CollectorRegistry,
    *,
    version: str,
    is_well: Callable[[], bool],
    is_ready: Callable[[], bool],
) -> Starlette:
    """The application."""

    async def landing(_request: Request) -> Response:
        return PlainTextResponse(LANDING.format(version=version))

    async def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    async def healthz(_request: Request) -> Response:
        return _said(is_well(), "well", "the storage failed")

    async def readyz(_request: Request) -> Response:
        return _said(is_well() and is_ready(), "ready", "not taking work")

    return Starlette(
        routes=[
            Route("/", landing),
            Route("/metrics", metrics),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
        ]
    )


def _said(good: bool, yes: str, no: str) -> Response:
    return PlainTextResponse(f"{yes if good else no}\n", status_code=200 if good else 503)
