"""Payloads: sizes count what their jobs have beside them, and parts take it along."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from jobline_server.engine.columns import INDEX_BYTES, LotColumns
from jobline_server.engine.packed import PackedValues
from jobline_server.engine.payloads import NO_PAYLOADS, Payloads
from jobline_server.engine.values import JobOptions

BESIDE = JobOptions(name="n", headers=(("a", "shared"), ("z", "kept")))

Row = tuple[bytes, str, str, str]
# Payload, values of two headers, and key.
rows_of = st.lists(
    st.tuples(
        st.binary(max_size=3),
        st.sampled_from(["", "1", "22"]),
        st.text(max_size=2),
        st.sampled_from(["", "k", "ké"]),
    ),
    min_size=1,
    max_size=12,
)
even_rows = st.integers(1, 12).map(lambda count: [(b"abc", "1", "é", "k")] * count)


def packed(texts: list[str]) -> PackedValues:
    return PackedValues.of([text.encode() for text in texts])


def payloads_of(rows: list[Row]) -> Payloads:
    plain, first, second, keys = map(list, zip(*rows, strict=True))
    payloads = Payloads.of(plain)
    payloads.columns = LotColumns([("a", packed(first)), ("b", packed(second))], packed(keys))
    return payloads


def bytes_of(row: Row) -> int:
    """Values of columns count with their headers, of two bytes here, and their indexes."""
    return len(row[0]) + sum(2 + len(text.encode()) + INDEX_BYTES for text in row[1:])


def options_of(row: Row) -> JobOptions:
    own = {key: value for key, value in zip("ab", row[1:3], strict=True) if value}
    merged = {**dict(BESIDE.headers), **own}
    return JobOptions(name="n", headers=tuple(sorted(merged.items())))


def check(found: Payloads, rows: list[Row], first: int = 0) -> None:
    """Everything from index `first` on is as in the list."""
    assert len(found) == len(rows)
    for index in range(first, len(rows)):
        payload, *_, key = rows[index]
        assert found[index] == payload
        assert found.options_of(index, BESIDE) == options_of(rows[index])
        assert found.job_key_of(index) == key
        assert found.bytes_of(index, 1) == bytes_of(rows[index]) <= found.job_bytes_max


@given(st.one_of(rows_of, even_rows), st.data())
def test_a_part_has_what_stands_beside_it(rows, data):
    found = payloads_of(rows)
    check(found, rows)
    start = data.draw(st.integers(0, len(rows)))
    count = data.draw(st.integers(0, len(rows) - start))
    part = found.part(start, count)
    if count:
        assert part == payloads_of(rows[start : start + count])
    check(part, rows[start : start + count])
    assert found.bytes_of(start, count) == sum(map(bytes_of, rows[start : start + count]))


@given(st.one_of(rows_of, even_rows), st.data())
def test_the_rest_keeps_its_indexes_and_columns(rows, data):
    """Twice, because what a checkpoint wrote is read and written again."""
    start = data.draw(st.integers(0, len(rows)))
    later = data.draw(st.integers(start, len(rows)))
    rest = payloads_of(rows).rest(start).rest(later)
    check(rest, rows, later)
    assert rest.bytes_of(later, len(rows) - later) == sum(map(bytes_of, rows[later:]))


@given(rows_of, rows_of, st.data())
def test_joined_and_picked_ones_are_those_of_the_lists(rows, others, data):
    joined = Payloads.joined([payloads_of(rows), payloads_of(others)])
    check(joined, rows + others)
    indexes = data.draw(st.lists(st.integers(0, len(rows + others) - 1)))
    check(joined.picked(indexes), [(rows + others)[index] for index in indexes])


@given(st.one_of(rows_of, even_rows), st.data())
@example([(b"", "", "", "")] * 2, None)
def test_fitting_is_as_many_as_one_would_count(rows, data):
    sizes = list(map(bytes_of, rows))
    start = data.draw(st.integers(0, len(rows) - 1)) if data else 0
    room = data.draw(st.integers(-1, 60)) if data else 7
    fits = 0
    while start + fits < len(rows) and sum(sizes[start : start + fits + 1]) <= room:
        fits += 1
    assert payloads_of(rows).fitting(start, len(rows) - start, room) == fits


@given(st.lists(st.binary(max_size=5), min_size=1, max_size=12), st.data())
def test_plain_payloads_fit_as_one_would_count(payloads, data):
    start = data.draw(st.integers(0, len(payloads) - 1))
    count = data.draw(st.integers(1, len(payloads) - start))
    room = data.draw(st.integers(-1, 40))
    fits = 0
    while fits < count and sum(map(len, payloads[start : start + fits + 1])) <= room:
        fits += 1
    assert Payloads.of(payloads).fitting(start, count, room) == fits


@given(st.one_of(rows_of, even_rows))
def test_bytes_of_each_are_known_where_all_jobs_take_the_same(rows):
    """Columns that are uneven may sum up to the same all the same: that is not looked for."""
    each = payloads_of(rows).bytes_each
    is_even = all(len({len(row[at].encode()) for row in rows}) == 1 for at in (1, 2, 3))
    is_even = is_even and len({len(row[0]) for row in rows}) == 1
    assert each == (bytes_of(rows[0]) if is_even else -1)


def test_plain_payloads_have_nothing_beside_them():
    plain = Payloads.of([b"ab", b"cd"])
    assert plain.columns is None
    assert plain.options_of(0, BESIDE) is BESIDE
    assert plain.job_key_of(1) == ""
    assert (plain.bytes_each, plain.job_bytes_max) == (2, 2)
    assert plain.picked([1]) == Payloads.of([b"cd"])
    assert Payloads.joined([plain, plain]) == Payloads.of([b"ab", b"cd"] * 2)
    assert len(NO_PAYLOADS) == 0


def test_payloads_are_equal_where_payloads_and_columns_are():
    row = (b"a", "1", "2", "k")
    one, other = payloads_of([row]), payloads_of([row])
    assert one == other
    assert hash(one) == hash(other)
    assert one != Payloads.of([b"a"])
    assert one != payloads_of([(b"a", "1", "2", "l")])
    assert (one == [b"a"]) is False


def test_none_fit_where_there_is_less_than_no_room():
    """As after a change of settings that left more than is allowed now."""
    assert Payloads.of([b"a", b"bc"]).fitting(0, 2, -1) == 0
