"""The commands `serve`, `dev`, `auth`, `inspect`, `verify` and `restore`, which the server adds to
`jobline`; and the demo.

The command line belongs to the client's distribution, which finds `register` through the
entry-point group `jobline.commands`. A command reads flags, calls `serving`, and prints; it has no
rule of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer


def register(app: typer.Typer) -> None:
    """Adds the server's commands to a command line."""
    from jobline_server.cli.auth import register as register_auth
    from jobline_server.cli.dev import register as register_dev
    from jobline_server.cli.inspect import register as register_inspect
    from jobline_server.cli.restore import register as register_restore
    from jobline_server.cli.serve import register as register_serve
    from jobline_server.cli.verify import register as register_verify

    for register_one in (
        register_serve,
        register_dev,
        register_auth,
        register_inspect,
        register_verify,
        register_restore,
    ):
        register_one(app)
