"""Options that every command with a server has, as `options` has those of some commands."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from jobline._channel import DEFAULT_TARGET

# Their part of each command's help.
PANEL = "Connection"

Server = Annotated[
    str,
    typer.Option(
        "--server",
        "-s",
        envvar="JOBLINE_SERVER",
        metavar="HOST:PORT",
        help="The server; unix:/path for a Unix socket.",
        rich_help_panel=PANEL,
    ),
]


def _file(name: str, help: str, envvar: str | None = None) -> Any:  # noqa: A002  # as typer calls it
    return typer.Option(name, envvar=envvar, metavar="FILE", help=help, rich_help_panel=PANEL)


TokenFile = Annotated[
    Path | None,
    _file("--token-file", "An API key or JSON Web Token is in it. Unset: that in JOBLINE_TOKEN."),
]
UseTls = Annotated[
    bool,
    typer.Option(
        "--tls",
        envvar="JOBLINE_TLS",
        metavar="",
        help="TLS, with the authorities of the system.",
        rich_help_panel=PANEL,
    ),
]
TlsCa = Annotated[
    Path | None,
    _file("--tls-ca", "TLS, with the authorities in this PEM file.", "JOBLINE_TLS_CA"),
]
ClientCertificate = Annotated[
    Path | None,
    _file(
        "--client-certificate",
        "TLS, and show this certificate (PEM).",
        "JOBLINE_CLIENT_CERTIFICATE",
    ),
]
ClientKey = Annotated[
    Path | None, _file("--client-key", "The key of the certificate (PEM).", "JOBLINE_CLIENT_KEY")
]


def parameters(server: Any = Server, default: str = DEFAULT_TARGET) -> list[inspect.Parameter]:
    """Returns them as parameters of a function, as `Connection` names them. A command may have
    another `server`.
    """
    keyword = inspect.Parameter.KEYWORD_ONLY
    shown = [
        ("server", server, default),
        ("token_file", TokenFile, None),
        ("use_tls", UseTls, False),
        ("tls_ca", TlsCa, None),
        ("client_certificate", ClientCertificate, None),
        ("client_key", ClientKey, None),
    ]
    return [
        inspect.Parameter(name, keyword, default=unset, annotation=annotation)
        for name, annotation, unset in shown
    ]
