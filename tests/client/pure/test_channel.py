"""What a channel is opened with: metadata that fits into headers."""

from __future__ import annotations

import re
from typing import Any

import pytest

from jobline import AsyncClient, Client, InvalidArgument, Worker
from jobline._channel import metadata_of, target_of


def test_keys_are_lower_case_on_the_wire():
    """HTTP/2 has no others."""
    assert metadata_of({"Authorization": "Bearer x"}) == (("authorization", "Bearer x"),)
    assert metadata_of(None) == ()


@pytest.mark.parametrize("make", [Client, AsyncClient, Worker])
@pytest.mark.parametrize(
    "metadata", [{"bad key": "x"}, {"ü": "x"}, {"": "x"}, {"a-bin": "x"}, {"a": "x\n"}, {"a": 5}]
)
def test_what_no_header_holds_is_refused_where_it_is_given(make, metadata: Any):
    """With each call gRPC would say "invalid metadata", or nothing, or try again for ever."""
    with pytest.raises(InvalidArgument, match="metadata"):
        make("localhost:1", metadata=metadata)


@pytest.mark.parametrize("make", [Client, AsyncClient, Worker])
@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("http://localhost:7070", "is not HOST:PORT alone"),
        ("tcp://queue.example:7070", "is not HOST:PORT alone"),
        ("localhost:7070/", "is not HOST:PORT alone"),
        ("nonsense", "has no port: write nonsense:7070"),
        ("[::1]", "has no port: write [::1]:7070"),
        (":7171", "has no host: write localhost:7171"),
        ("localhost:", "a port is 1 … 65535, as in localhost:7070"),
        ("localhost:http", "a port is 1 … 65535"),
        ("localhost:99999", "a port is 1 … 65535"),
        ("localhost:7070 ", "a port is 1 … 65535"),
        ("a b:70", "'a b' is no name of a host"),
        ("::1:7070", "without brackets: write it as in [::1]:7070"),
        ("[queue]:7070", "'[queue]' is no name of a host"),
        ("", "is empty: give HOST:PORT"),
        (7070, "is text, as in 'localhost:7070', and not of type int"),
    ],
)
def test_what_is_no_address_is_refused_where_it_is_given(make, target: Any, said: str):
    """Trial B7: gRPC would look for it at port 443, or say with each call that there is no host."""
    with pytest.raises(InvalidArgument, match=re.escape(said)) as refused:
        make(target)
    assert refused.value.field == "target"


@pytest.mark.parametrize(
    "target",
    [
        "queue_1.example.:7070",
        "10.0.0.1:1",
        "[::1]:65535",
        "[fe80::1%eth0]:7070",
        "unix:jobline.sock",
        "unix:///run/jobline.sock",
        "dns:///queue.example",
        "ipv4:10.0.0.1:7070,10.0.0.2:7070",
    ],
)
def test_addresses_of_all_kinds_are_taken(target: str):
    """Beside HOST:PORT those that gRPC reads by itself."""
    assert target_of(target) == target


def test_a_wrong_variable_is_named(monkeypatch):
    """Who finds the sentence in a log has not written the address there."""
    monkeypatch.setenv("JOBLINE_SERVER", "queue")
    with pytest.raises(InvalidArgument, match=r"^JOBLINE_SERVER: the server's address 'queue' has"):
        target_of(None)
