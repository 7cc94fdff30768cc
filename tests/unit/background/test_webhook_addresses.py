"""No webhook leads into the network that the server is in, unless it is allowed to."""

from __future__ import annotations

import pytest

from jobline_server.background.webhook_addresses import Forbidden, check_name, choose

PUBLIC = ["93.184.216.34", "2606:2800:220:1::1"]
PRIVATE = ["10.0.0.1", "172.16.5.4", "192.168.1.1", "127.0.0.1", "100.64.0.1", "::1", "fd00::1"]
NEVER = [
    "169.254.169.254", "fe80::1", "fe80::1%eth0", "224.0.0.1", "ff02::1", "0.0.0.0", "::",
    "255.255.255.255", "240.0.0.1", "::ffff:10.0.0.1", "::ffff:93.184.216.34", "::127.0.0.1",
    "2002:7f00:1::", "2002:5db8:d822::", "64:ff9b::7f00:1", "64:ff9b:1::1", "2001:0:1::1",
    "fec0::1", "168.63.129.16", "100.100.100.200", "fd00:ec2::254", "0.0.0.1", "192.0.0.192",
    "192.0.0.9", "192.88.99.1", "3fff::1",
]  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_public_address_is_allowed(address: str) -> None:
    assert choose("h", [address], allow_private=False) == address


@pytest.mark.parametrize("address", PRIVATE)
def test_private_address_is_allowed_by_a_setting(address: str) -> None:
    with pytest.raises(Forbidden):
        choose("h", [address], allow_private=False)
    assert choose("h", [address], allow_private=True) == address


@pytest.mark.parametrize("address", NEVER)
def test_other_address_is_never_allowed(address: str) -> None:
    for allow_private in (True, False):
        with pytest.raises(Forbidden):
            choose("h", [address], allow_private=allow_private)


def test_one_wrong_address_of_a_host_is_enough() -> None:
    """Which one is connected to must not be left to chance."""
    with pytest.raises(Forbidden):
        choose("h", [PUBLIC[0], "10.0.0.1"], allow_private=False)
    with pytest.raises(Forbidden):
        choose("h", [], allow_private=True)


def test_only_the_log_has_the_address(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever watches webhooks would learn what the network has, name by name."""
    with caplog.at_level("INFO"), pytest.raises(Forbidden) as refused:
        choose("h", ["10.1.2.3"], allow_private=False)
    assert str(refused.value) == "h has an address that is not public"
    assert "10.1.2.3" in caplog.text


@pytest.mark.parametrize(
    "name",
    [
        "metadata",
        "metadata.google.internal",
        "x.internal",
        "internal",
        "metadata.x.",
        "a.internal.",
    ],
)
def test_names_of_internal_networks_are_never_allowed(name: str) -> None:
    with pytest.raises(Forbidden):
        check_name(name)


@pytest.mark.parametrize("name", ["example.com", "internal.example.com", "my-metadata.com"])
def test_other_names_are_allowed(name: str) -> None:
    check_name(name)
