"""Marks of calls: whatever a client sends, and in whatever pieces it comes, each call gets its mark
and nothing else changes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hpack import Decoder, Encoder, NeverIndexedHeaderTuple
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.http2 import DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, frame
from jobline_server.rpc.tls.marks import CONTINUATION, TEXT_BYTES_MAX, Marker

NAME, VALUE = "x-mark", "17"
PADDED, PRIORITY = 0x08, 0x20


def frames_of(data: bytes) -> list[tuple[int, int, int, bytes]]:
    """Kind, flags, stream and content of each frame after the preface."""
    assert data.startswith(PREFACE)
    at, found = len(PREFACE), []
    while at < len(data):
        end = at + 9 + int.from_bytes(data[at : at + 3])
        number = int.from_bytes(data[at + 5 : at + 9])
        found.append((data[at + 3], data[at + 4], number, data[at + 9 : end]))
        at = end
    assert at == len(data)
    return found


def fields_of(block: bytes, decoder: Decoder) -> list[tuple[str, str]]:
    """The fields of a block, as text."""
    return [(str(name), str(value)) for name, value in decoder.decode(block)]


frames = st.builds(
    frame,
    st.sampled_from([DATA, HEADERS, SETTINGS, CONTINUATION, 0xFF]),
    st.sampled_from([0, END_STREAM, END_HEADERS, END_STREAM | END_HEADERS, 0xFF]),
    st.integers(0, 2**31 - 1),
    st.binary(max_size=40),
)


@given(st.lists(frames, max_size=8), st.binary(max_size=8), st.data())
def test_pieces_change_nothing(sent: list[bytes], cut: bytes, data: st.DataObject) -> None:
    """Bytes that come one by one are passed on as those that come at once, and all are there."""
    whole = PREFACE + b"".join(sent)
    at_once = Marker(NAME, VALUE).feed(whole + cut)
    places = data.draw(st.lists(st.integers(0, len(whole + cut)), max_size=30))
    ends = [0, *sorted(places), len(whole + cut)]
    marker = Marker(NAME, VALUE)
    assert at_once == b"".join(marker.feed((whole + cut)[a:b]) for a, b in pairwise(ends))

    mark = frames_of(Marker(NAME, VALUE).feed(PREFACE + frame(HEADERS, END_HEADERS, 1, b"")))[1][3]
    expected = []
    for kind, flags, number, content in frames_of(whole):
        ends_fields = kind in {HEADERS, CONTINUATION} and flags & END_HEADERS
        expected.append((kind, flags & ~END_HEADERS if ends_fields else flags, number, content))
        if ends_fields:
            expected.append((CONTINUATION, END_HEADERS, number, mark))
    found = frames_of(Marker(NAME, VALUE).feed(whole))
    assert found == expected


def test_other_calls_of_a_connection_mean_what_they_meant() -> None:
    """The mark is in no table of HPACK: the next calls name fields by their numbers there."""
    encoder, decoder, marker = Encoder(), Decoder(), Marker(NAME, VALUE)
    marker.feed(PREFACE)
    for number in range(3):
        fields = [(":path", "/a.B/C"), ("authorization", "Bearer x"), ("n", str(number // 2))]
        got = marker.feed(frame(HEADERS, END_HEADERS, 2 * number + 1, encoder.encode(fields)))
        block = b"".join(content for _, _, _, content in frames_of(PREFACE + got))
        marked = list(decoder.decode(block))
        assert [(str(name), str(value)) for name, value in marked] == [*fields, (NAME, VALUE)]
        assert isinstance(marked[-1], NeverIndexedHeaderTuple)


def test_padding_and_priority_stay_in_their_frame() -> None:
    encoder = Encoder()
    block = encoder.encode([(":path", "/a.B/C")])
    content = bytes([3]) + bytes(5) + block + bytes(3)
    sent = frame(HEADERS, END_HEADERS | PADDED | PRIORITY, 1, content)
    first, second = frames_of(Marker(NAME, VALUE).feed(PREFACE + sent))
    assert first == (HEADERS, PADDED | PRIORITY, 1, content)
    assert fields_of(block + second[3], Decoder()) == [(":path", "/a.B/C"), (NAME, VALUE)]


def test_a_mark_that_would_not_fit_is_refused() -> None:
    """Its length is one byte."""
    Marker("x" * TEXT_BYTES_MAX, "1")
    with pytest.raises(ValueError, match="at most 126 bytes"):
        Marker("x" * (TEXT_BYTES_MAX + 1), "1")
