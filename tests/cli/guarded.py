"""A server that asks for tokens and speaks TLS, and the command line as its operators type it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import trustme
from typer.testing import CliRunner

from jobline import Client, Tls
from jobline_server.auth.grants import VERBS
from jobline_server.testing import running_server_in_thread
from tests.cli.conftest import APP, Ran
from tests.server.access import api_key, auth_file, key, role
from tests.server.authorities import HOST, Files


@dataclass(frozen=True, slots=True)
class Guarded:
    """A running one. Its callers are named by their verbs: `read`, `manage-read`; `stranger` has
    all of them, for a queue that is not there.
    """

    address: str
    folder: Path
    files: Files
    http: str = ""

    def token_file(self, name: str) -> Path:
        """A file with the token of a caller."""
        path = self.folder / f"{name}.token"
        path.write_text(key(name) + "\n")
        return path

    def client(self) -> Client:
        """A client that may do everything."""
        return Client(self.address, token=key("root"), tls=Tls(ca=self.files.client_ca))

    def flags(self, name: str = "", *, tls: bool = True) -> list[str]:
        """The options that a caller gives."""
        given = ["--server", self.address]
        given += ["--tls-ca", str(self.files.client_ca)] if tls else []
        return given + (["--token-file", str(self.token_file(name))] if name else [])

    def client_flags(self) -> list[str]:
        """The options that show a certificate of a client."""
        shown = ["--client-certificate", str(self.files.certificate)]
        return [*shown, "--client-key", str(self.files.key)]


def run(*arguments: object, stdin: str = "", **variables: str) -> Ran:
    """Runs a command with these environment variables alone."""
    runner = CliRunner(env={"COLUMNS": "200", "JOBLINE_SERVER": None, **variables})
    ended = runner.invoke(APP, [str(one) for one in arguments], input=stdin)
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return Ran(ended.exit_code, ended.stdout, ended.stderr)


@contextmanager
def guarded_server(
    folder: Path, *, mutual: bool = False, certified: str = "", **settings: object
) -> Iterator[Guarded]:
    """Runs one; each combination of verbs that is named has a key. `certified` is the name of a
    certificate that may do everything.
    """
    files, authority = Files(folder), trustme.CA()
    files.write(authority.issue_cert(HOST))
    authority.cert_pem.write_to_path(files.client_ca)
    lines = role("root", (["*"], VERBS)) + api_key("root", "root")
    lines += role("stranger", (["elsewhere"], VERBS)) + api_key("stranger", "stranger")
    lines += role("three", (["elsewhere*"], VERBS)) + api_key("stranger-of-three", "three")
    for verb in VERBS:
        lines += role(verb, (["*"], [verb])) + api_key(verb, verb)
    for verbs in COMBINATIONS:
        lines += api_key(verbs, *verbs.split("-"))
    if certified:
        lines += f'[[certificates]]\nname = "{certified}"\nroles = ["root"]\n'
    auth = auth_file(folder, lines)
    with running_server_in_thread(
        folder / "data",
        transport="auto",
        auth=auth,
        listen=f"{HOST}:0",
        **files.settings(mutual=mutual),
        **settings,
    ) as server:
        yield Guarded(server.address, folder, files, server.http)


COMBINATIONS = ("read-manage", "read-work", "read-push-work-manage", "read-read_payload")
