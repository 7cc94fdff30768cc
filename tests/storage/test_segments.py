"""Key segments: which item keys are given out, and which go when an hour has ended."""

from __future__ import annotations

from jobline_server.engine.limits import KEY_BUCKET_MS
from jobline_server.storage.segments import KeySegments

HOUR, LATER = 500_000, 500_001


def test_segments_of_all_shards_and_hours_have_keys_of_their_own():
    given = [
        segments.add(hour)
        for segments in (KeySegments(0), KeySegments(1_023))
        for hour in (HOUR, LATER)
        for _ in range(3)
    ]
    assert len(set(given)) == len(given)
    assert max(given) < 1 << 53


def test_segments_go_once_their_hour_has_ended():
    segments = KeySegments(3)
    gone = [segments.add(HOUR), segments.add(HOUR)]
    kept = segments.add(LATER)
    assert segments.ended((HOUR + 1) * KEY_BUCKET_MS - 1) == {}
    assert segments.ended(LATER * KEY_BUCKET_MS) == {HOUR: gone}
    segments.forget(HOUR)
    assert segments.ended(1 << 53) == {LATER: [kept]}


def test_segments_that_are_there_already_are_not_given_out_again():
    known = KeySegments(3)
    first, second, third = (known.add(HOUR) for _ in range(3))
    segments = KeySegments(3)
    segments.note(second)
    segments.note(first)
    assert segments.add(HOUR) == third


def test_segments_that_were_not_kept_are_given_out_again():
    segments = KeySegments(3)
    first, second = segments.add(HOUR), segments.add(HOUR)
    for item_key in (first, second):
        segments.take_back(item_key)
    assert segments.add(HOUR) == first
    segments.forget(HOUR)
    segments.take_back(second)
    assert segments.ended(1 << 53) == {}
