"""The comparison with peers: its rows, its table, what it refuses. Nothing is measured."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.machine import Machine
from benchmarks.peers import __main__ as program
from benchmarks.peers import building, results, syncs, table
from benchmarks.peers.measuring import QUICK, Measuring, counted
from benchmarks.peers.peer import CannotBuild, CannotMeasure, Command, Load, Peer, Row, Setup
from benchmarks.peers.serving import free_port, served

MACHINE = Machine("a fast one", 2, 1 << 30, "Linux", "ext4", 1e-4, 1e-3, "Python 3.11")
KEYS = [setup.key for peer in program.PEERS for setup in peer.setups]


def row(key: str = "a", *, many: float = 1.0, syncs: float | None = 1.0, failed: str = "") -> Row:
    rates: dict[str, float] = {} if failed else {Load.MANY: many, Load.SINGLE: 1_234.4}
    return Row(key, f"System {key}", "fsync", "Go", "", True, "1.0", rates, syncs, failed)


# -------------------------------------------------------------------------------------------- rows


def test_each_row_has_a_key_of_its_own_and_a_place_in_the_docs():
    """The key is a file's name; the docs say how each peer is built."""
    assert len(set(KEYS)) == len(KEYS)
    docs = report.DOCS.read_text(encoding="utf-8")
    for peer in program.PEERS:
        assert f"`{building.command_of(peer)}`" in docs, peer.name


def test_load_is_told_where_its_server_is():
    """PostgreSQL's clients take a URL, which a port alone is not."""
    at = {
        (peer.name, setup.load(7)[setup.load(7).index("-address") + 1])
        for peer in program.PEERS
        for setup in peer.setups
    }
    assert {where for name, where in at if name != "river"} == {"127.0.0.1:7"}
    (river,) = (where for name, where in at if name == "river")
    assert river.startswith("postgres://postgres@127.0.0.1:7/postgres?")


def test_only_known_peers_are_chosen():
    """None named is all."""
    assert program.chosen("") == program.PEERS
    assert [peer.name for peer in program.chosen("river, nats")] == ["river", "nats"]
    with pytest.raises(ValueError, match="no peer kafka; there are jobline, nats"):
        program.chosen("nats,kafka")


# ------------------------------------------------------------------------------------------- syncs


def test_syncs_are_counted_once_each():
    """Also those that another thread interrupted, and writes of files that are opened for it."""
    lines = [
        "17 fsync(5) = 0",
        "17 fdatasync(9 <unfinished ...>",
        "18 fsync(5) = 0",
        "17 <... fdatasync resumed>) = 0",
        "fdatasync(3) = 0",
        '17 openat(AT_FDCWD, "msgs/1.blk", O_RDWR|O_CREAT|O_SYNC|O_CLOEXEC, 0640) = 9',
        '17 openat(AT_FDCWD, "O_SYNCED", O_RDONLY|O_CLOEXEC) = 9',
        '17 openat(AT_FDCWD, "fsync(", O_RDONLY) = 9',
        "17 +++ exited with 0 +++",
    ]
    assert syncs.count(lines) == 5


@pytest.mark.parametrize(
    ("seen", "synced"), [(1.0, True), (2.5, True), (0.94, False), (0.0, False), (None, False)]
)
def test_row_is_synced_only_if_it_was_seen(seen, synced):
    """What the configuration says is not believed."""
    assert row(syncs=seen).is_synced is synced


def test_row_that_syncs_after_its_answers_is_not_synced():
    """However often it does."""
    buffered = row(syncs=1.0)
    buffered.synced = False
    assert not buffered.is_synced


# ------------------------------------------------------------------------------------------ results


def kept(tmp_path: Path, *, scale: str = "whole", now: float = 1_000.0) -> results.Results:
    return results.Results(tmp_path, scale, now)


def test_interrupted_run_goes_on_with_the_rows_that_it_had(tmp_path):
    """A row that failed is measured again."""
    kept(tmp_path).keep(row("a"))
    kept(tmp_path).keep(row("b", failed="not measured: it did not start"))
    assert kept(tmp_path).begin(["a", "b"]) == {"a": row("a")}


def test_run_that_is_over_is_not_taken_for_an_interrupted_one(tmp_path):
    """The next one measures all anew."""
    for key in ("a", "b"):
        kept(tmp_path).keep(row(key))
    assert kept(tmp_path).begin(["a", "b"]) == {}
    assert kept(tmp_path).begin(["a", "b", "c"]) == {}


@pytest.mark.parametrize(
    ("scale", "now"), [("quick", 1_000.0), ("whole", 1_000.0 + results.LASTS_SECONDS)]
)
def test_rows_of_another_run_are_not_taken(tmp_path, scale, now):
    """A table has figures of one scale and one day."""
    kept(tmp_path).keep(row("a"))
    assert kept(tmp_path, scale=scale, now=now).begin(["a", "b"]) == {}


@pytest.mark.parametrize("text", ["", "{", "{}", '{"scale": "whole", "at": 1, "row": {"x": 1}}'])
def test_torn_file_is_no_row(tmp_path, text):
    """The row is measured again."""
    (tmp_path / "a.json").write_text(text)
    assert kept(tmp_path).begin(["a", "b"]) == {}


# -------------------------------------------------------------------------------------------- table


def test_synced_rows_come_first_and_those_without_figures_last():
    """Each by what 64 callers push."""
    rows = [
        row("memory", many=9.0, syncs=0.0),
        row("missing", failed="could not be built: no go"),
        row("slow", many=1.0),
        row("fast", many=2.0),
    ]
    assert [one.key for one in table.sorted_rows(rows)] == ["fast", "slow", "memory", "missing"]


def test_cells_have_three_digits_and_say_what_is_missing():
    """A load that a peer cannot do is a dash, a peer that is not there a reason."""
    shown = table.cells(row(many=123_456.0))
    assert shown == ["System a", "fsync", "1.00", "–", "123,000", "1,230", "–"]
    assert table.cells(row(syncs=None))[2] == "not counted"
    failed = table.cells(row(failed="could not be built: no go"))
    assert failed == ["System a", "fsync", "", "could not be built: no go", "", "", ""]
    assert len(failed) == len(table.HEADS)


def test_table_is_written_in_its_place(tmp_path):
    """And what stands around it stays; the docs have that place once."""
    assert all(report.DOCS.read_text().count(place) == 1 for place in (table.BEGIN, table.END))
    docs = tmp_path / "benchmarks.md"
    docs.write_text(f"before\n{table.BEGIN}\n{table.END}\nafter")
    for _ in range(2):
        table.write([row("a", many=5.0), row("b", failed="could not be built: x")], MACHINE, docs)
    text = docs.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter")
    assert text.count("| System a | fsync | 1.00 |") == 1
    assert text.count("| System a | 1.0 | has none |") == 1
    assert "| System b | 1.0 |" not in text


# ----------------------------------------------------------------------------------------- refusals


def test_load_that_the_server_does_not_confirm_is_no_figure():
    """Nor one that did nothing."""
    assert counted('noise\n{"jobs": 7, "seconds": 2, "counted": 8}\n', held=1) == (7, 2.0)
    with pytest.raises(CannotMeasure, match="the load says 7 jobs, and the server 6"):
        counted('{"jobs": 7, "seconds": 2, "counted": 6}')
    with pytest.raises(CannotMeasure):
        counted('{"jobs": 0, "seconds": 2, "counted": 0}')


def setup(key: str, command: Command) -> Setup:
    def load(_port: int) -> list[str]:
        return ["false"]

    return Setup(key, "A peer", "fsync", "Go", "", lambda _data, _port: command, load, 1_000, True)


def peer(tools: list[str], *words: str) -> Peer:
    command = Command(words, free_port())
    return Peer("peer", tools, lambda: "1.0", [setup("one", command), setup("two", command)])


def test_peer_that_cannot_be_built_has_rows_that_say_why(tmp_path):
    """It is never left out in silence, and is tried again by the next run."""
    said: list[str] = []
    measuring = Measuring(tmp_path, QUICK, said.append)
    rows = program.rows_of(peer(["no-such-tool"]), measuring, kept(tmp_path), {})
    assert [one.failed for one in rows] == ["could not be built: there is no tool no-such-tool"] * 2
    assert len(said) == 1
    assert kept(tmp_path).begin(["one", "two"]) == {}


def test_server_that_does_not_start_is_named_and_the_next_row_goes_on(tmp_path):
    """The last line that it said is the reason."""
    measuring = Measuring(tmp_path, QUICK, lambda _line: None)
    broken = peer([], "sh", "-c", "echo no such option; exit 3")
    rows = program.rows_of(broken, measuring, kept(tmp_path), {})
    assert [one.failed for one in rows] == [
        "not measured: the server ended at once: no such option"
    ] * 2


def test_missing_package_is_named_with_what_brings_it(tmp_path, monkeypatch):
    """On a machine that has neither the program nor what installs it."""
    for program_name in ("bash", "dirname", "mkdir"):
        found = shutil.which(program_name)
        assert found is not None
        (tmp_path / program_name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotBuild, match="nor apt-get: install redis-server"):
        building.build(["redis"])


def listening_on(port: int) -> list[str]:
    """A server that leaves its port to a child."""
    code = f"import socket, time; s = socket.create_server(('127.0.0.1', {port})); time.sleep(600)"
    return ["sh", "-c", f'"{sys.executable}" -c "{code}" & sleep 600']


def test_all_processes_of_a_server_end(tmp_path):
    """Also children that nobody waits for, when the load fails."""
    port = free_port()
    command = Command(listening_on(port), port)
    with pytest.raises(CannotMeasure, match="a load"), served(command, tmp_path):
        raise CannotMeasure("a load")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_servers_end_with_a_run_that_is_ended(tmp_path):
    """By SIGTERM, as a time limit does it."""
    port = free_port()
    (tmp_path / "data").mkdir()
    code = (
        "import time\nfrom pathlib import Path\n"
        "from benchmarks.peers.peer import Command\n"
        "from benchmarks.peers.serving import end_servers_when_ended, served\n"
        "end_servers_when_ended()\n"
        f"with served(Command({listening_on(port)!r}, {port}), Path({str(tmp_path / 'data')!r})):\n"
        "    print('ready', flush=True)\n    time.sleep(600)\n"
    )
    run = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=report.ROOT)
    assert run.stdout is not None
    with run:
        assert run.stdout.readline() == b"ready\n"
        run.terminate()
    assert run.returncode == 128 + signal.SIGTERM
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
