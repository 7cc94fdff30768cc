"""URLs of webhooks: what may be said, and where it leads."""

from __future__ import annotations

import pytest

from jobline_server.wire.webhook_urls import Target, target_of


@pytest.mark.parametrize(
    ("url", "target", "authority"),
    [
        ("http://a.example", Target("http", "a.example", 80, "/"), "a.example"),
        ("https://A.example/x?y=z#f", Target("https", "a.example", 443, "/x?y=z"), "a.example"),
        ("https://a.example:80/", Target("https", "a.example", 80, "/"), "a.example:80"),
        ("http://[::1]:8080/", Target("http", "::1", 8080, "/"), "[::1]:8080"),
    ],
)
def test_where_a_url_leads(url: str, target: Target, authority: str) -> None:
    assert target_of(url) == target
    assert target_of(url).authority == authority


@pytest.mark.parametrize(
    "url",
    [
        "", "x", "ftp://a/", "http://", "http:///x", "http://a:b@c/", "http://@c/", "http://a:0/",
        "http://a:99999/", "http://a:x/", "http://[::1/", "http://a/\n", "http://a b/",
        "http://é.example/", "http://a\\b/", "javascript:alert(1)", "//a/",
    ],
)  # fmt: skip
def test_what_is_no_url_of_a_webhook(url: str) -> None:
    with pytest.raises(ValueError, match=r"^(must|is)"):
        target_of(url)
