"""A browser reads events only under names that are this server's, or nobody's."""

from __future__ import annotations

import pytest

from jobline_server.web.page_hosts import is_strange_page

OURS = ["https://app.example", "http://[2001:db8::1]:3000", "http://Jobs.example:8080"]
BROWSER = {"accept-language": "en"}


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:7071", "10.1.2.3", "[::1]:7071", "localhost:7071", "a.localhost", "jobline",
        "jobline:7071", "jobline.work.svc", "jobline.work.svc.cluster.local:7071", "box.local",
        "jobs.internal", "LOCALHOST.", "app.example", "APP.example:443", "jobs.example:7071",
    ],
)  # fmt: skip
def test_names_of_this_server_and_of_nobody(host: str) -> None:
    assert not is_strange_page({"host": host, **BROWSER}, OURS)


STRANGE = [
    "evil.example:7071", "app.example.evil.example", "127.0.0.1.evil.example", "xlocal.example",
    "evil.example.", "", "[", ":7071", "localhost.example", "a b.example",
]  # fmt: skip


@pytest.mark.parametrize("host", STRANGE)
def test_names_of_others(host: str) -> None:
    for headers in (BROWSER, {"sec-fetch-site": "same-origin"}, {"sec-fetch-mode": "cors"}):
        assert is_strange_page({"host": host, **headers}, OURS)
        assert is_strange_page({"host": host, **headers}, [])
        assert not is_strange_page({"host": host, **headers}, ["*"])
    assert not is_strange_page({"host": host, "user-agent": "curl/8"}, OURS)


def test_browser_without_host_is_strange() -> None:
    assert is_strange_page(BROWSER, OURS)
