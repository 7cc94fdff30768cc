"""The leaves of validation: what each lets through, and what it makes of it."""

from __future__ import annotations

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from jobline.v1 import job_service_pb2, queue_service_pb2
from jobline_server.engine.commands import Refused
from jobline_server.engine.values import AckLevel
from jobline_server.rpc.validate import fields
from jobline_server.rpc.validate.list_limits import check_all


@pytest.mark.parametrize("name", ["a", "A9", "0", "a.b_c-d:e", "x" * 256])
def test_queue_names_of_the_allowed_shape(name: str) -> None:
    """Letters, digits and four signs, 1 to 256."""
    assert fields.queue_name(name) == name


@pytest.mark.parametrize("name", ["", "_a", ".a", "a b", "a/b", "é", "a\n", "x" * 257])
def test_other_queue_names_are_refused_without_repeating_them(name: str) -> None:
    """Messages never repeat the value."""
    with pytest.raises(Refused) as caught:
        fields.queue_name(name)
    assert len(name) < 2 or name not in caught.value.message


@pytest.mark.parametrize("value", ["", "täsk", "作業", "a\u00a0b", "\u3000", "😀"])
def test_words_may_be_in_any_script(value: str) -> None:
    """Spaces of other scripts are no control characters."""
    assert fields.single_line(value, "name", 10) == value


@pytest.mark.parametrize("value", ["\0", "a\n", "\x7f", "\x80", "\x9f", "a\tb", "x" * 11])
def test_control_characters_and_long_words_are_refused(value: str) -> None:
    """C0, DEL and C1 alike."""
    with pytest.raises(Refused):
        fields.single_line(value, "name", 10)


def test_many_words_find_the_one_at_fault() -> None:
    """The fast look at all of them, then the slow one."""
    with pytest.raises(Refused) as caught:
        fields.single_lines(["a", "b\0", "c"], "names", 10)
    assert caught.value.field == "names[1]"


@pytest.mark.parametrize(
    ("value", "bytes_max", "cut"),
    [("abc", 10, "abc"), ("abc", 2, "ab"), ("aé", 2, "a"), ("a\0b", 10, "a\ufffdb"), ("", 1, "")],
)
def test_free_text_is_cut_between_characters(value: str, bytes_max: int, cut: str) -> None:
    """A job can always fail, with any error."""
    assert fields.cut_text(value, bytes_max) == cut


@pytest.mark.parametrize(
    ("value", "expected"),
    [(Duration(), 0), (Duration(seconds=5), 5_000), (Duration(nanos=1), 1)],
)
def test_durations_in_milliseconds(value: Duration, expected: int) -> None:
    """A started millisecond counts."""
    assert fields.duration_ms(value, "delay", 0, 10_000) == expected


@pytest.mark.parametrize(
    "value",
    [
        Duration(seconds=-1),
        Duration(nanos=-1),
        Duration(seconds=11),
        Duration(nanos=1_000_000_000),
        Duration(seconds=2**62),
    ],
)
def test_other_durations_are_refused(value: Duration) -> None:
    """Negative, too long, overflowing."""
    with pytest.raises(Refused):
        fields.duration_ms(value, "delay", 0, 10_000)


@pytest.mark.parametrize("seconds", [-62_135_596_800, 0, 253_402_300_799])
def test_moments_of_the_years_1_to_9999(seconds: int) -> None:
    """The range of a Timestamp."""
    assert fields.moment_ms(Timestamp(seconds=seconds), "at") == seconds * 1_000


@pytest.mark.parametrize(
    "value",
    [
        Timestamp(seconds=-62_135_596_801),
        Timestamp(seconds=253_402_300_800),
        Timestamp(nanos=-1),
        Timestamp(nanos=1_000_000_000),
    ],
)
def test_other_moments_are_refused(value: Timestamp) -> None:
    """Years before 1 and after 9999."""
    with pytest.raises(Refused):
        fields.moment_ms(value, "at")


def test_members_are_known_or_unset() -> None:
    """Zero is unset, and an unknown number is refused."""
    assert fields.enum_member(0, "level", AckLevel) is None
    assert fields.enum_member(3, "level", AckLevel) is AckLevel.FSYNCED
    with pytest.raises(Refused):
        fields.enum_member(4, "level", AckLevel)


def test_unknown_fields_of_newer_clients_are_fine() -> None:
    """An unknown field number is not a mistake."""
    check_all(job_service_pb2.PushRequest.FromString(b"\xa0\x06\x01"))


def test_a_known_field_of_a_wrong_type_is_found_deep_inside() -> None:
    """Protobuf would take it for an unknown one, and lose it in silence."""
    raw = b"\x12\x05\x1a\x03\x0a\x01x"
    message = queue_service_pb2.UpdateQueueRequest.FromString(raw)

    with pytest.raises(Refused) as caught:
        check_all(message)
    assert caught.value.field == "settings.backoff.kind"


def test_bounds_of_durations_are_said_as_people_write_them() -> None:
    """400 days are no power of ten."""
    with pytest.raises(Refused, match=r"must be 0\.05 s to 34,560,000 s"):
        fields.duration_ms(Duration(), "delay", 50, 34_560_000_000)
