"""What a channel is opened with: metadata that fits into headers."""

from __future__ import annotations

from typing import Any

import pytest

from jobline import AsyncClient, Client, InvalidArgument, Worker
from jobline._channel import metadata_of


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
@pytest.mark.parametrize("target", ["http://localhost:7070", "HTTPS://queue.example"])
def test_an_address_of_the_web_is_refused_where_it_is_given(make, target: str):
    """GRPC would say with each call that there is no such host."""
    with pytest.raises(InvalidArgument, match="HOST:PORT"):
        make(target)
