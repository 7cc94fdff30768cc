"""Web pages that call over HTTP: none, or those of the origins that the settings name."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from jobline_server.config import ConfigurationError, load_settings
from jobline_server.testing import RunningServer, running_server
from tests.server.http_calls import client_of, post, refusal_of
from tests.server.sse import refused, watching

PUSH = b'{"queue": "q", "payloads": ["aGk="]}'
OURS, THEIRS = "https://app.example", "https://evil.example"
PREFLIGHT = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "content-type,connect-protocol-version,connect-timeout-ms",
}
PATH = "/jobline.v1.JobService/Push"


@pytest.fixture
async def open_to_ours() -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server that our page may call."""
    settings = f"{OURS}, http://localhost:3000"
    async with running_server(http_cors_origins=settings) as server, client_of(server) as client:
        yield client


async def test_no_page_may_call_by_default(server: RunningServer) -> None:
    """Neither after asking nor without: a page could reach a server on its reader's machine under a
    name of its own, which CORS takes for the same origin.
    """
    async with client_of(server) as client:
        asked = await client.options(PATH, headers={"Origin": OURS, **PREFLIGHT})
        called = await post(client, "JobService/Push", PUSH, Origin=f"http://{server.http}")

    assert "access-control-allow-origin" not in asked.headers
    assert called.status_code == 403
    assert refusal_of(called).code == "PERMISSION_DENIED"


async def test_a_named_origin_may_call(open_to_ours: httpx.AsyncClient) -> None:
    asked = await open_to_ours.options(PATH, headers={"Origin": OURS, **PREFLIGHT})
    assert asked.status_code == 200
    assert asked.headers["access-control-allow-origin"] == OURS
    assert "POST" in asked.headers["access-control-allow-methods"]

    called = await post(open_to_ours, "JobService/Push", PUSH, Origin=OURS)
    assert called.status_code == 200
    assert called.headers["access-control-allow-origin"] == OURS

    invalid = await post(open_to_ours, "JobService/Push", b"{}", Origin=OURS)
    assert refusal_of(invalid).field == "queue"
    assert invalid.headers["access-control-allow-origin"] == OURS


async def test_another_origin_may_not(open_to_ours: httpx.AsyncClient) -> None:
    asked = await open_to_ours.options(PATH, headers={"Origin": THEIRS, **PREFLIGHT})
    assert "access-control-allow-origin" not in asked.headers
    for origin in (THEIRS, "null", f"{OURS}.evil.example"):
        called = await post(open_to_ours, "JobService/Push", PUSH, Origin=origin)
        assert called.status_code == 403
        assert "access-control-allow-origin" not in called.headers


async def test_all_origins_may_call_where_the_settings_say_so() -> None:
    async with running_server(http_cors_origins="*") as server, client_of(server) as client:
        called = await post(client, "JobService/Push", PUSH, Origin=THEIRS)
        assert called.headers["access-control-allow-origin"] == "*"


async def test_page_of_anybody_reads_no_events_under_its_own_name() -> None:
    """For what a page gets of its own server, browsers name no origin; the name leads here now."""
    browser = {"accept-language": "en"}
    async with running_server(http_cors_origins=OURS) as server:
        reply = await refused(server, host="evil.example:7071", **browser)
        assert reply.status_code == 403
        assert refusal_of(reply).code == "PERMISSION_DENIED"
        assert "http_cors_origins" in reply.text
        for headers in (browser, {"host": "app.example", **browser}, {"host": "evil.example"}):
            async with watching(server, **headers) as watcher:
                assert watcher.response.status_code == 200


@pytest.mark.parametrize("value", ["app.example", "https://app.example/", "https://*.example"])
def test_what_is_no_origin_stops_the_start(value: str) -> None:
    with pytest.raises(ConfigurationError, match="an origin is SCHEME://HOST"):
        load_settings({"http_cors_origins": value})
