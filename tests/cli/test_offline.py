"""`jobline inspect` and `jobline verify`: files without a server, whole and damaged."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
import pytest_asyncio

from jobline import AsyncClient
from jobline.cli.exit_codes import Exit
from jobline_server.offline.checks import check
from jobline_server.offline.opening import find
from jobline_server.storage.recovery_cases import PROMISED_BUT_MISSING
from jobline_server.storage.sqlite.statements import load
from jobline_server.testing.embedded import running_server

LIVE, ENDED = 150, 40


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def left(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Path]]:
    """What servers leave: one that was killed, with writes in the WAL, one that was stopped."""
    folder = tmp_path_factory.mktemp("left")
    data, killed = folder / "stopped", folder / "killed"
    async with running_server(data) as server, AsyncClient(server.address) as client:
        await client.push_many("mail", [{"n": number} for number in range(LIVE)])
        await server.runtime.checkpoints.take_due(everything=True)
        await client.push_many("done", [{"n": number} for number in range(ENDED)])
        await client.ack(*await client.pull("done", max_jobs=ENDED))
        await server.runtime.ended.writer.write()
        shutil.copytree(data, killed)
    yield {"stopped": data, "killed": killed}


@pytest.fixture(params=["stopped", "killed"])
def store(request: pytest.FixtureRequest, left: dict[str, Path], tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(left[request.param], tmp_path / "data"))


@pytest.fixture
def stopped(left: dict[str, Path], tmp_path: Path) -> Path:
    """One that was stopped."""
    return Path(shutil.copytree(left["stopped"], tmp_path / "data"))


def spoil(file: Path, statement: str) -> None:
    """Changes a row behind the back of its checksum."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement)
        connection.commit()


def content_of(store: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in store.iterdir()
        if path.name != "lock"
    }


def test_whole_files_are_verified_and_left_as_they_are(jobline, store):
    before = content_of(store)
    ended = jobline("verify", store)
    assert ended.code == Exit.OK, ended.out
    assert "✗" not in ended.out
    assert f"{ENDED} in" in ended.out
    assert content_of(store) == before


def test_contents_are_shown_and_left_as_they_are(jobline, store):
    before = content_of(store)
    contents = jobline("inspect", store, "--json").document
    assert sum(one["jobs"] for one in contents["ended"] if one["queue"] == "done") == ENDED
    assert {one["kind"]: one["items"] for one in contents["kinds"]}["lot"] >= 1
    assert len(contents["shards"]) == 8
    shown = jobline("inspect", store)
    assert shown.code == Exit.OK
    assert "COMPLETED" in shown.out
    assert content_of(store) == before


def test_journal_is_listed_commit_by_commit_without_payloads(jobline, left):
    commits = jobline("inspect", left["killed"], "--journal", "--limit", 0, "--json").lines
    facts = {(fact["fact"], fact["queue"]) for commit in commits for fact in commit["facts"]}
    assert ("LotPushed", "done") in facts
    assert "payload" not in json.dumps(commits)
    of_one = jobline("inspect", left["killed"], "--journal", "--shard", 3, "--json").lines
    assert {one["shard"] for one in of_one} <= {3}
    assert "LotPushed done" in jobline("inspect", left["killed"], "--journal").out


def test_journal_that_is_not_there_is_no_empty_one(jobline, stopped):
    for words, said in {
        (stopped, "--shard", 0): "write --journal, too",
        (stopped, "--journal", "--shard", 999): "no shard 999",
        (stopped / "finished.db", "--journal"): "has no journal",
    }.items():
        ended = jobline("inspect", *words)
        assert ended.code == Exit.USAGE, ended.out
        assert said in ended.err


@pytest.mark.parametrize(
    ("file", "statement", "said"),
    [
        (
            "jobline.db",
            "UPDATE item SET blob = CAST(blob || 'x' AS BLOB) WHERE kind = 2",
            "wrong checksum: lot",
        ),
        (
            "jobline.db",
            "UPDATE journal SET blob = CAST(blob || 'x' AS BLOB)",
            "case 9, bad checksum",
        ),
        ("jobline.db", "DELETE FROM journal", "case 13, short of the shard row"),
        ("jobline.db", "UPDATE shard SET offset = 1, chain = 7 WHERE offset > 1", "case 5"),
        ("jobline.db", "DROP TRIGGER fence", "its schema is not the one"),
        ("finished.db", "UPDATE ended SET queue = 'other'", f"{ENDED} of {ENDED} have a record"),
        ("finished.db", "UPDATE ended SET queue = CAST(x'ff' AS TEXT)", "wrong checksum"),
        ("finished.db", "UPDATE tally SET jobs = jobs + 1", "have other jobs than are counted"),
        ("finished.db", "UPDATE belongs SET identity = 1", "finished.db of another store"),
    ],
)
def test_damage_is_named_and_the_rest_is_checked(jobline, left, tmp_path, file, statement, said):
    store = Path(shutil.copytree(left["killed"], tmp_path / "data"))
    spoil(store / file, statement)
    ended = jobline("verify", store)
    assert ended.code == Exit.FAILED
    assert said in ended.out
    assert "ended jobs" in ended.out
    assert "Copy the directory" in ended.err
    lines = jobline("verify", store, "--json").lines
    assert "failed" in {line["health"] for line in lines}


def test_lost_commits_are_found_by_the_watermark(jobline, left, tmp_path):
    """The WAL is gone: what is left is a whole database, only an older one."""
    store = Path(shutil.copytree(left["killed"], tmp_path / "data"))
    (store / "jobline.db-wal").unlink()
    ended = jobline("verify", store)
    assert ended.code == Exit.FAILED
    assert str(PROMISED_BUT_MISSING) in ended.out


@pytest.mark.parametrize("name", ["jobline.db", "finished.db"])
@pytest.mark.parametrize("left_bytes", [0, 7, 5_000, 20_000])
def test_truncated_file_is_said_to_be_damaged(jobline, stopped, name, left_bytes):
    with (stopped / name).open("r+b") as file:
        file.truncate(left_bytes)
    for command in ("verify", "inspect"):
        ended = jobline(command, stopped)
        if command == "verify" or left_bytes < 100:
            assert ended.code == Exit.FAILED
            assert "damaged" in ended.out + ended.err


@pytest.mark.parametrize("name", ["jobline.db", "finished.db", "promise"])
def test_file_that_is_gone_is_missed(jobline, stopped, name):
    (stopped / name).unlink()
    ended = jobline("verify", stopped)
    assert ended.code == Exit.FAILED
    assert name in ended.out


@pytest.mark.parametrize("command", ["verify", "inspect"])
def test_what_cannot_be_read_is_a_sentence_and_an_exit_code(jobline, tmp_path, stopped, command):
    text = tmp_path / "notes.txt"
    text.write_text("not a database")
    other = tmp_path / "other.db"
    spoil(other, "CREATE TABLE anything (x)")
    for path, code, said in (
        (tmp_path / "nowhere", Exit.NOT_FOUND, f"there is no {tmp_path / 'nowhere'}"),
        (text, Exit.USAGE, "is no file of Jobline"),
        (stopped / "promise", Exit.USAGE, "Give a data directory"),
        (other, Exit.USAGE, "a database of something else"),
        (tmp_path, Exit.USAGE, "no data directory of Jobline"),
    ):
        ended = jobline(command, path)
        assert (ended.code, said in ended.err.replace("\n", " ")) == (code, True), ended.err
        error = json.loads(jobline(command, path, "--json").err)["error"]
        assert said in f"{error['message']} {error['advice']}"


@pytest.mark.parametrize(("format_", "said"), [(99, "or a newer one"), (1, "brings it on")])
def test_other_format_is_refused(jobline, stopped, format_, said):
    spoil(stopped / "jobline.db", f"PRAGMA user_version = {format_}")
    ended = jobline("verify", stopped)
    assert ended.code == Exit.REFUSED
    assert f"has format {format_}" in ended.err
    assert said in ended.err


def test_files_of_a_running_server_are_left_alone(jobline, served):
    data = json.loads(jobline("verify", served["data"], "--json").err)["error"]
    assert "is in use by process" in data["message"]
    assert jobline("verify", served["data"]).code == Exit.REFUSED
    assert jobline("inspect", served["data"]).code == Exit.REFUSED


def test_one_file_is_read_by_itself(jobline, store):
    assert "items" in jobline("verify", store / "jobline.db").out
    renamed = (store / "finished.db").rename(store.parent / "kept.db")
    if (store / "finished.db-wal").exists():
        (store / "finished.db-wal").rename(store.parent / "kept.db-wal")
    ended = jobline("verify", renamed)
    assert ended.code == Exit.OK, ended.out
    assert "ended jobs" in ended.out
    assert "jobline.db" not in ended.out


class Silent:
    """No bar."""

    def begin(self, _title, _total):
        return lambda _done: None


def test_memory_does_not_grow_with_the_number_of_records(stopped):
    """Copies of one ended record until there are ten thousand: each has a wrong checksum, which is
    what keeps most in memory."""
    add = """WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
        INSERT INTO ended SELECT i + (1 << 50), 1, queue, state, former_state, stale_ms, ended_ms,
        reason, 0, run_first, run_count, checksum, body, due_ms, keep_count, 'copy', error_type,
        error_message, zeroblob(2000), NULL, NULL, NULL FROM n, (SELECT * FROM ended LIMIT 1)"""
    spoil(stopped / "finished.db", add)
    tracemalloc.start()
    try:
        found = list(check(find(stopped), Silent()))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert any("10,000 of" in one.found for one in found)
    assert peak < 8 << 20


class Counted:
    """Keeps what was said of each piece of work: its total, and how much was done."""

    def __init__(self):
        self.work = {}

    def begin(self, title, total):
        self.work[title] = [total, 0]

        def done(amount):
            self.work[title][1] += amount

        return done


def test_progress_over_ended_jobs_has_a_total_that_is_reached(stopped):
    """Reading them, and counting them again."""
    progress = Counted()
    assert not [one for one in check(find(stopped), progress) if one.is_damaged]
    for title in ("ended jobs", "counts of ended jobs"):
        total, done = progress.work[title]
        assert total == done > 0, title


def test_ended_jobs_are_read_without_sorting_them(stopped):
    """SQLite would keep them in memory, which no Python counts."""
    statements = load("offline.sql")
    with closing(sqlite3.connect(stopped / "finished.db")) as connection:
        for name in ("count_parts", "every_part", "every_tallied", "tally"):
            plan = connection.execute(f"EXPLAIN QUERY PLAN {statements[name]}").fetchall()
            assert "TEMP B-TREE" not in str(plan), name
