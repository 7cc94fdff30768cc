"""The command line `jobline`: `jobline <noun> <verb>`.

It is a client like any other: it sees a server only through `jobline.Client`, and never imports the
server. A server distribution adds its commands (`serve`, `dev`) through the entry-point group
`jobline.commands`. Needs typer and rich, which come with `pip install 'jobline[cli]'`.
"""

from __future__ import annotations

import os
import sys

from jobline._interrupts import INTERRUPTED, end_quietly

_NEEDED = {"typer", "rich"}


def _open_closed() -> None:
    """Has standard streams that the caller has closed (`>&-`) lead to nowhere. Python has None in
    their place, and the next socket would get their number: what is printed would go there.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free, which is this one: those below are open.
            os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            mode = "r" if number == 0 else "w"
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115  # for good
            setattr(sys, name, stream)


def main() -> None:
    """The console script."""
    end_quietly()
    _open_closed()
    # Before grpc is imported: it writes lines of its own to stderr, beside the output of a command.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        from jobline.cli.root import run

        run()
    except KeyboardInterrupt:  # before a command had begun; those answer for themselves
        sys.exit(INTERRUPTED)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _NEEDED:
            raise
        from jobline._installing import how_to_install

        sys.exit(
            f"jobline: the command line needs {error.name}, which is not installed.\n"
            f"Install it {how_to_install('jobline', 'cli')}"
        )
