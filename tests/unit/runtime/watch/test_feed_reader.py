"""A watcher reads all events once, in answers of a bounded size, from any position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.limits import SEQUENCE_BITS
from jobline_server.engine.values import JobError
from jobline_server.runtime.watch import feed_reader
from jobline_server.runtime.watch.event_origin import EventOrigin, cut, singles
from jobline_server.runtime.watch.feed_reader import (
    EVENTS_TOGETHER,
    TEXT_EVENTS,
    Answer,
    Reader,
    Room,
)
from jobline_server.runtime.watch.position import Position, parse
from jobline_server.runtime.watch.watch_filter import WatchFilter
from jobline_server.wire.event_runs import EventRun

LIFE, SHARDS = 1, 2
EVERYTHING = WatchFilter()


@dataclass
class ABatch:
    """A batch as the reader needs it."""

    shard: int
    offset: int
    runs: Sequence[EventRun]
    written: bool = True


class Untouched(ABatch):
    """One whose events nobody may ask for."""

    def __init__(self, shard: int, offset: int) -> None:
        self.shard, self.offset, self.written = shard, offset, True

    @property
    def runs(self) -> Sequence[EventRun]:  # type: ignore[override]  # a field of others
        raise AssertionError("its events are of no use to this watcher")


class AFeed:
    """Batches by number; those below `first` were dropped."""

    def __init__(self, *batches: ABatch, first: int = 0) -> None:
        self._batches = batches
        self._first = first

    @property
    def end(self) -> int:
        return len(self._batches)

    def batch(self, number: int) -> ABatch | None:
        if number < self._first:
            raise Refused(RefusalKind.OFFSET_GONE, "gone")
        return self._batches[number] if number < self.end else None


def lot(jobs: int, *, first_id: int = 100, message: str = "", error: str = "") -> EventRun:
    """Events of consecutive jobs."""
    view = EventOrigin(0, 1).view(0, 1, "mail", message=message)
    view.error = JobError(error) if error else None
    (run,) = cut(view, [first_id], [jobs])
    return run


def a_reader(feed: AFeed, room: Room = Room.EVENTS, wanted: WatchFilter = EVERYTHING) -> Reader:
    return Reader(feed, wanted, Position(LIFE, 0, [0] * SHARDS), room)


def ids_in(answers: Iterable[Answer]) -> list[int]:
    return [
        start + index
        for answer in answers
        for part in answer.parts
        for run in [part.run.part(part.skip, part.count)]
        for start, count in zip(run.starts, run.counts, strict=True)
        for index in range(count)
    ]


def all_of(reader: Reader) -> list[Answer]:
    answers = []
    for _ in range(1_000):
        answers.append(reader.read())
        if reader.is_at_end:
            return answers
    raise AssertionError("it never comes to the end")


def test_an_empty_feed_is_an_answer_without_events() -> None:
    reader = a_reader(AFeed())
    assert (reader.read(), reader.is_at_end) == (Answer([], "1.0.0.0"), True)


def test_an_answer_holds_many_batches_and_the_token_after_the_last() -> None:
    feed = AFeed(ABatch(0, 7, [lot(2)]), ABatch(1, 3, [lot(1, first_id=5), lot(2, first_id=9)]))
    reader = a_reader(feed)
    answer = reader.read()
    assert (ids_in([answer]), answer.token) == ([100, 101, 5, 9, 10], "1.2.7.3")
    assert [part.key for part in answer.parts] == [(0, 0), (1, 0), (1, 1)]
    assert [part.begun for part in answer.parts] == ["1.0.0.0@0+0", "1.1.7.0@1+0", "1.1.7.0@1+1"]
    assert reader.read() == Answer([], "1.2.7.3")


@pytest.mark.parametrize("room", Room)
@pytest.mark.parametrize("written", [True, False])
def test_a_batch_larger_than_an_answer_goes_on_where_it_was_cut(
    room: Room, *, written: bool
) -> None:
    """Every event is sent once, whichever token a watcher resumes from."""
    ids = range(10, 10 + 2 * 9_000, 2)
    runs = list(singles(EventOrigin(0, 1).view(0, 1, "mail"), [*ids]))
    feed = AFeed(ABatch(0, 7, runs, written), ABatch(0, 8, [lot(1, first_id=1)]))
    answers = all_of(a_reader(feed, room))
    seen = ids_in(answers)
    assert len(answers) > 2
    assert seen == [*ids, 1]
    for number, answer in enumerate(answers):
        rest = Reader(feed, EVERYTHING, parse(answer.token, SHARDS), room)
        assert ids_in(all_of(rest)) == ids_in(answers[number + 1 :])


def test_single_events_are_cut_at_the_same_places_for_all_watchers() -> None:
    """They share the parts that are made of them."""
    feed = AFeed(ABatch(0, 7, [lot(2 * EVENTS_TOGETHER + 5)]))
    (first,) = all_of(a_reader(feed))
    position = parse(f"1.0.0.0@0+{EVENTS_TOGETHER - 2}", SHARDS)
    (second,) = all_of(Reader(feed, EVERYTHING, position, Room.EVENTS))
    cuts = [[(part.key, part.skip, part.count) for part in one.parts] for one in (first, second)]
    common = [((0, 0), EVENTS_TOGETHER, EVENTS_TOGETHER), ((0, 0), 2 * EVENTS_TOGETHER, 5)]
    assert cuts[0] == [((0, 0), 0, EVENTS_TOGETHER), *common]
    assert cuts[1] == [((0, 0), EVENTS_TOGETHER - 2, 2), *common]


def test_runs_are_not_cut_by_their_jobs() -> None:
    """A lot of any length is one run of ids."""
    feed = AFeed(ABatch(0, 7, [lot(1_000_000), lot(3, first_id=1)]))
    parts = a_reader(feed, Room.RUNS).read().parts
    assert [(part.skip, part.count) for part in parts] == [(0, 1_000_000), (0, 3)]


@pytest.mark.parametrize("text", [{"message": "x"}, {"error": "E"}], ids=lambda text: str(*text))
def test_events_with_a_text_fill_an_answer_sooner(text: dict[str, str]) -> None:
    feed = AFeed(ABatch(0, 7, [lot(Room.EVENTS, **text)]))  # type: ignore[arg-type]  # names of fields
    answers = all_of(a_reader(feed))
    sizes = [sum(part.count for part in answer.parts) for answer in answers]
    assert sizes == [Room.EVENTS // TEXT_EVENTS] * TEXT_EVENTS


def test_a_watcher_of_one_job_asks_for_no_events_of_other_shards() -> None:
    job_id = 1 << SEQUENCE_BITS | 4
    feed = AFeed(Untouched(0, 7), ABatch(1, 3, [lot(3, first_id=job_id - 1)]), Untouched(0, 8))
    answer = a_reader(feed, wanted=WatchFilter(job_id=job_id)).read()
    assert (ids_in([answer]), answer.token) == ([job_id], "1.3.8.3")


def test_batches_that_an_earlier_life_sent_are_passed() -> None:
    """After a restart a position is found again by the offsets of its shards."""
    feed = AFeed(Untouched(0, 7), ABatch(0, 8, [lot(3)]), Untouched(1, 3))
    reader = Reader(feed, EVERYTHING, Position(LIFE, 0, [7, 3], {0: 1}), Room.EVENTS)
    answer = reader.read()
    assert (ids_in([answer]), answer.token) == ([101, 102], "1.3.8.3")


def test_a_watcher_that_finds_nothing_reads_a_bounded_number_of_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The loop goes on in between; the token moves on, so that nothing is looked at twice."""
    monkeypatch.setattr(feed_reader, "RUNS_AT_ONCE", 6)
    feed = AFeed(*(ABatch(0, number, [lot(1)]) for number in range(1, 8)))
    answers = all_of(a_reader(feed, wanted=WatchFilter(frozenset({"other"}))))
    assert [answer.parts for answer in answers] == [[]] * len(answers)
    assert [answer.token for answer in answers] == ["1.3.3.0", "1.6.6.0", "1.7.7.0"]


def test_events_that_were_dropped_are_refused() -> None:
    """Whether a watcher asks for them or for the token there."""
    reader = a_reader(AFeed(ABatch(0, 7, [lot(1)]), ABatch(0, 8, [lot(1)]), first=1))
    for ask in (reader.read, reader.token):
        with pytest.raises(Refused) as refused:
            ask()
        assert refused.value.kind is RefusalKind.OFFSET_GONE


def test_tokens_of_parts_say_where_each_begins() -> None:
    """A client that got a part appends how many of its events it has seen."""
    feed = AFeed(ABatch(0, 7, [lot(EVENTS_TOGETHER * 3, first_id=1)]))
    parts = a_reader(feed).read().parts
    for part, following in pairwise(parts):
        seen = parse(f"{part.begun}+{part.count}", SHARDS)
        assert seen == parse(following.begun, SHARDS)
