"""The pages of the HTTP port."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

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

FULL = "ready, but refuses pushes: the disk is full"


def make_pages(
    registry: CollectorRegistry,
    *,
    look: Callable[[], Awaitable[None]],
    version: str,
    failing: Callable[[], list[str]],
    is_ready: Callable[[], bool],
    is_full: Callable[[], bool],
) -> Starlette:
    """The application. `look` has the registry see what there is; `failing` says in lines what
    does not work.
    """

    async def landing(_request: Request) -> Response:
        return PlainTextResponse(LANDING.format(version=version))

    async def metrics(request: Request) -> Response:
        await look()
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    async def healthz(_request: Request) -> Response:
        return _said(failing(), "well")

    async def readyz(_request: Request) -> Response:
        # Not a 503: whoever takes a server out of service for that keeps acks away as well.
        ready = FULL if is_full() else "ready"
        return _said(failing() or ([] if is_ready() else ["not taking work"]), ready)

    return Starlette(
        routes=[
            Route("/", landing),
            Route("/metrics", metrics),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
        ]
    )


def _said(against: list[str], good: str) -> Response:
    """200, or 503 with what speaks against it."""
    if against:
        return PlainTextResponse("".join(f"{line}\n" for line in against), status_code=503)
    return PlainTextResponse(f"{good}\n")
