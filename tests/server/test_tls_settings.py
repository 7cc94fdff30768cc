"""Settings of TLS that cannot be applied stop the start."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path

import pytest

from jobline_server.rpc.listening import CannotServe
from jobline_server.testing import running_server
from tests.server.access import auth_file, role
from tests.server.authorities import Files


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tls_key": None}, "tls_certificate and tls_key: both or none"),
        ({"tls_certificate": None, "tls_key": None}, "tls_client_ca: needs tls_certificate"),
        ({"tls_key": "clients.pem"}, "^tls_key: .*clients.pem holds a certificate, and no key"),
        ({"tls_client_ca": "server.key"}, "^tls_client_ca: .*server.key has no certificates"),
        ({"tls_certificate": "none.pem"}, "^tls_certificate: .*none.pem: no such file"),
        ({"tls_key": "none.pem"}, "^tls_key: .*none.pem: no such file"),
        ({"tls_client_ca": "none.pem"}, "^tls_client_ca: .*none.pem: no such file"),
    ],
)
async def test_what_stops_a_start(files: Files, change: dict, said: str) -> None:
    named = {
        name: files.folder / str(value) if value is not None and name != "transport" else value
        for name, value in change.items()
    }
    settings = files.settings(mutual=True) | {"transport": "auto"} | named
    with pytest.raises(Exception, match=said):
        async with running_server(data=files.folder / "d", **settings):
            pass


async def test_certificates_of_callers_need_tls(tmp_path: Path) -> None:
    """Names that nobody could show would be rules that mean nothing."""
    text = role("all", (["*"], ["push"])) + '[[certificates]]\nname = "x"\nroles = ["all"]\n'
    with pytest.raises(Exception, match="only where tls_client_ca is set"):
        async with running_server(auth=auth_file(tmp_path, text)):
            pass


async def test_a_folder_for_sockets_that_is_too_long_is_refused_and_the_port_given_back(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A door has a socket there; what is said names TMPDIR, and not the port."""
    folder = files.folder / ("x" * 100)
    folder.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{probe.getsockname()[1]}"
    settings = files.settings() | {"transport": "native", "listen": listen}
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        with pytest.raises(CannotServe, match=r"107 bytes.*TMPDIR"):
            async with running_server(data=files.folder / "d", **settings):
                pass
    assert not list(folder.iterdir())
    async with running_server(data=files.folder / "d", **settings) as server:
        assert server.address == listen
