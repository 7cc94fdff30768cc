"""The machine: what figures depend on beside the program. The disk is measured, not believed."""

from __future__ import annotations

import mmap
import os
import platform
import re
import sqlite3
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.processes import SERVER_CORE

FSYNCS = 400
PAGE = b"\0" * 4096
# More than the slices that are compared take.
TOUCHED_BYTES = 1 << 30
PACKAGES = ("jobline-server", "grpcio", "pygrpc-native", "protobuf", "uvloop", "aiosqlite")


@dataclass(frozen=True, slots=True)
class Machine:
    """What is published beside figures."""

    processor: str
    cores: int
    memory_bytes: int
    kernel: str
    disk: str
    fsync_p50: float
    fsync_p99: float
    versions: str

    def lines(self) -> list[tuple[str, str]]:
        """Names and values, as people read them."""
        p50, p99 = f"{self.fsync_p50 * 1e6:.0f} µs", f"{self.fsync_p99 * 1e3:.1f} ms"
        fsync = f"append 4 KiB + fdatasync: p50 {p50}, p99 {p99}"
        return [
            ("processor", f"{self.processor}, {self.cores} cores: server on one, load on another"),
            ("memory", f"{self.memory_bytes / (1 << 30):.0f} GiB"),
            ("kernel", self.kernel),
            ("disk", f"{self.disk}; {fsync}"),
            ("versions", self.versions),
        ]


def look(directory: Path) -> Machine:
    """Looks at the machine, and at the disk that a directory is on."""
    p50, p99 = fsync_times(directory)
    return Machine(
        processor=_processor(),
        cores=os.cpu_count() or 1,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        kernel=f"{platform.system()} {platform.release()} {platform.machine()}",
        disk=_disk(directory),
        fsync_p50=p50,
        fsync_p99=p99,
        versions=_versions(),
    )


def touch_memory(size: int = TOUCHED_BYTES) -> None:
    """Touches so many free bytes and lets go of them. A virtual machine takes its free pages away
    from time to time, and to get one back costs more than all that a push does: so what is measured
    next is the server, not where its memory comes from.
    """
    touched = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_POPULATE", 0)
    mmap.mmap(-1, size, flags=touched).close()


def fsync_times(directory: Path) -> tuple[float, float]:
    """How long it takes to append a page and have it on disk: the median, and one in a hundred."""
    path = directory / "fsync"
    times = []
    with path.open("wb", buffering=0) as file:
        for _ in range(FSYNCS):
            began = perf_counter()
            file.write(PAGE)
            os.fdatasync(file.fileno())
            times.append(perf_counter() - began)
    path.unlink()
    times.sort()
    return median(times), times[FSYNCS * 99 // 100]


def _processor() -> str:
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1].strip() if found else platform.machine()


def _disk(directory: Path) -> str:
    """File system and device of the longest mount point above a directory."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    path = directory.resolve()
    above = [mount for mount in mounts if path.is_relative_to(mount[1])]
    device, _, kind, *_ = max(above, key=lambda mount: len(mount[1]))
    return f"{kind} on {device}"


def _versions() -> str:
    found = [f"Python {platform.python_version()}", f"SQLite {sqlite3.sqlite_version}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    said = subprocess.run(["h2load", "--version"], capture_output=True, text=True, check=False)
    return ", ".join([*found, said.stdout.strip().replace(" nghttp2/", " ")])


def load_average() -> float:
    """How busy the machine is already."""
    return os.getloadavg()[0]


def check_cores() -> None:
    """Refuse to measure where server and load would share a core."""
    cores = os.sched_getaffinity(0)
    if len(cores) < 2 or SERVER_CORE not in cores:
        raise TooFewCores("the benchmarks need two cores: one for the server, one for the load")


class TooFewCores(Exception):
    """Figures would mean nothing."""
