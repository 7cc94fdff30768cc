"""The pages of the HTTP port: landing, metrics, health."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from jobline_server.web.metrics_page import MetricsPage

LANDING = """Jobline {version}

  /metrics       counters, for Prometheus
  /healthz       200 while the process is well
  /readyz        200 while it takes work
  /openapi.json  the calls of this port, if it serves them: POST /jobline.v1.JobService/Push …
  /events        what happens, as it happens (server-sent events)

All calls, and streams, go over gRPC on the other port: grpcurl -plaintext HOST:PORT list
"""

FULL = "ready, but refuses pushes: the disk is full"


def make_pages(
    registry: CollectorRegistry,
    *,
    refresh: Callable[[], Awaitable[None]],
    version: str,
    failing: Callable[[], list[str]],
    broken: Callable[[], list[str]],
    is_ready: Callable[[], bool],
    is_full: Callable[[], bool],
) -> Starlette:
    """Returns the application. `refresh` updates the metrics of the registry; `failing` returns a
    line for everything that fails, `broken` for what keeps the server from working.
    """
    metrics_page = MetricsPage(registry, refresh)

    async def landing(_request: Request) -> Response:
        return PlainTextResponse(LANDING.format(version=version))

    async def metrics(request: Request) -> Response:
        page, content_type = await metrics_page.make(request.headers.get("accept", ""))
        return Response(page, headers={"content-type": content_type})

    async def healthz(_request: Request) -> Response:
        return _health(failing(), "well")

    async def readyz(_request: Request) -> Response:
        # Not a 503: a load balancer that removed the server would also keep acks away.
        ready = FULL if is_full() else "ready"
        return _health(broken() or ([] if is_ready() else ["not taking work"]), ready)

    return Starlette(
        routes=[
            Route("/", landing),
            Route("/metrics", metrics),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
        ]
    )


def _health(problems: list[str], text: str) -> Response:
    """Returns 200 with a text, or 503 with the problems, one per line."""
    if problems:
        return PlainTextResponse("".join(f"{line}\n" for line in problems), status_code=503)
    return PlainTextResponse(f"{text}\n")
