"""How many jobs one client may push in a time."""

from __future__ import annotations

import pytest

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.rpc.client_rates import ClientRates, host_of

ANN, BOB = "ipv4:10.0.0.7:41522", "ipv6:[::1]:41522"


class Clients:
    """Rates, and a clock that is turned by hand."""

    def __init__(self, rate: int, burst: int, *, clients_max: int = 100) -> None:
        self.now = 1_000.0
        self.rates = ClientRates(rate, burst, lambda: self.now, clients_max=clients_max)

    def waits_ms(self, peer: str, jobs: int) -> int:
        """After how long to try again; 0 if the jobs were let in."""
        try:
            self.rates.take(peer, jobs)
        except Refused as refused:
            return refused.retry_after_ms or -1
        return 0


def test_a_client_pushes_its_burst_and_then_at_its_rate() -> None:
    clients = Clients(10, 20)
    assert [clients.waits_ms(ANN, 15), clients.waits_ms(ANN, 5)] == [0, 0]
    assert clients.waits_ms(ANN, 1) == 100
    clients.now += 0.1
    assert [clients.waits_ms(ANN, 1), clients.waits_ms(ANN, 1)] == [0, 100]


def test_a_refusal_says_what_the_rate_is() -> None:
    clients = Clients(10, 2_000)
    assert clients.waits_ms(ANN, 2_000) == 0
    with pytest.raises(Refused, match="up to 10 jobs per second, 2,000 at once") as caught:
        clients.rates.take(ANN, 1_000)
    assert caught.value.kind is RefusalKind.CLIENT_RATE


def test_a_refusal_takes_nothing() -> None:
    clients = Clients(10, 20)
    assert clients.waits_ms(ANN, 18) == 0
    for _ in range(5):
        assert clients.waits_ms(ANN, 4) == 200
    assert clients.waits_ms(ANN, 2) == 0


def test_clients_have_buckets_of_their_own() -> None:
    """By their hosts, whatever the connection."""
    clients = Clients(10, 10)
    assert clients.waits_ms(ANN, 10) == 0
    assert clients.waits_ms("ipv4:10.0.0.7:999", 1) == 100
    assert clients.waits_ms(BOB, 10) == 0
    assert clients.waits_ms("unix:", 10) == 0
    assert clients.waits_ms("unix:/run/jobline.sock", 1) == 100


def test_a_batch_over_the_burst_waits_for_a_full_bucket() -> None:
    """And takes what comes later: the rate holds over time."""
    clients = Clients(10, 10)
    assert clients.waits_ms(ANN, 40) == 0
    assert clients.waits_ms(ANN, 1) == 3_100
    clients.now += 3.1
    assert clients.waits_ms(ANN, 1) == 0
    assert clients.waits_ms(ANN, 40) == 1_000


def test_only_so_many_clients_are_known() -> None:
    """Those that pushed last."""
    clients = Clients(10, 10, clients_max=3)
    for number in (1, 2, 1, 3, 4):
        clients.waits_ms(f"ipv4:10.0.0.{number}:5", 5)
    assert len(clients.rates) == 3
    assert clients.waits_ms("ipv4:10.0.0.1:5", 1) == 100


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("ipv4:10.0.0.7:41522", "ipv4:10.0.0.7"),
        ("ipv6:[fe80::1%25eth0]:80", "ipv6:[fe80::1%25eth0]"),
        ("ipv6:%5B::1%5D:80", "ipv6:%5B::1%5D"),
        ("unix:", "unix"),
        ("unix:/a/b:c", "unix"),
    ],
)
def test_a_client_is_its_host(peer: str, host: str) -> None:
    assert host_of(peer) == host
