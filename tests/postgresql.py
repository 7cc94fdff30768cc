"""A PostgreSQL server of the tests' own: a new cluster in a temporary directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MISSING = "PostgreSQL's initdb and pg_ctl are not installed (Debian: apt-get install postgresql)"


def programs() -> Path | None:
    """The directory with PostgreSQL's programs, the newest version first; None without them."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("pg_ctl")
    for folder in [*debian, *([Path(found).parent] if found else [])]:
        if (folder / "initdb").exists():
            return folder
    return None


@contextmanager
def postgresql() -> Iterator[str]:
    """Runs a server; yields what `psycopg.connect` takes. fsync is off: tests kill no database."""
    folder = programs()
    assert folder is not None, MISSING
    # PostgreSQL refuses to run as root; Debian's package has made a user for it. A program changes
    # to it, as `subprocess.run(user=...)` forks: gRPC's handlers of a fork crash now and then.
    user = "postgres" if os.geteuid() == 0 else None
    as_user = ["setpriv", f"--reuid={user}", "--clear-groups"] if user is not None else []
    with tempfile.TemporaryDirectory(prefix="jobline-pg-", ignore_cleanup_errors=True) as base:
        if user is not None:
            shutil.chown(base, user)
        data = Path(base) / "data"

        def run(program: str, *arguments: str) -> None:
            subprocess.run(
                [*as_user, folder / program, "-D", data, *arguments],
                check=True,
                cwd=base,
                stdout=subprocess.DEVNULL,
                timeout=120,
            )

        run("initdb", "--auth=trust", "--username=postgres", "--no-sync", "--encoding=UTF8")
        settings = f"-c listen_addresses= -c unix_socket_directories={base} -c fsync=off"
        run("pg_ctl", "-w", "-t", "100", "-l", f"{base}/log", "-o", settings, "start")
        try:
            yield f"host={base} user=postgres dbname=postgres"
        finally:
            run("pg_ctl", "-m", "immediate", "stop")
