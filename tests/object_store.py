"""An object store on this machine that speaks S3 over a socket: moto's, behind a gate that asks for
the right key, can be shut, and can stop an upload in the middle.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import fsspec
import pytest
from moto.backends import get_backend
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import BaseWSGIServer, make_server

BUCKET = "backups"
ACCESS_KEY = "AKIAJOBLINE"
SECRET_KEY = "the-secret-of-a-test"
# The least that S3 takes for a part but the last.
PART_BYTES = 5 << 20
REFUSED = (
    b"<Error><Code>InvalidAccessKeyId</Code>"
    b"<Message>The AWS Access Key Id you provided does not exist in our records.</Message></Error>"
)
Environ = dict[str, Any]
Start = Callable[[str, list[tuple[str, str]]], Any]


@dataclass
class Gate:
    """Stands before the store. `holds`: which requests do nothing, and get no answer before the
    test is over; `held` is set by the first of them.
    """

    app: Any
    holds: Callable[[Environ], bool] = field(default=lambda _: False)
    held: threading.Event = field(default_factory=threading.Event)
    is_over: threading.Event = field(default_factory=threading.Event)

    def __call__(self, environ: Environ, start: Start) -> Iterable[bytes]:
        """Answers a request, by the store or by itself."""
        if f"Credential={ACCESS_KEY}/" not in environ.get("HTTP_AUTHORIZATION", ""):
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start("403 Forbidden", [("Content-Type", "application/xml")])
            return [REFUSED]
        if self.holds(environ):
            self.held.set()
            self.is_over.wait()
            start("503 Service Unavailable", [])
            return []
        answer: Iterable[bytes] = self.app(environ, start)
        return answer


class ObjectStore:
    """The store. It can be away, and come back with all that it had, at the same port."""

    def __init__(self) -> None:
        self.gate = Gate(DomainDispatcherApplication(create_backend_app))
        self._server: BaseWSGIServer | None = None
        self.port = 0

    def open(self) -> None:
        """Serves."""
        self._server = make_server("127.0.0.1", self.port, self.gate, threaded=True)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def shut(self) -> None:
        """Refuses connections from now on."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    @property
    def files(self) -> Any:
        """The store, as fsspec reaches it, with nothing kept of what it said before."""
        return fsspec.filesystem("s3", skip_instance_cache=True, use_listings_cache=False)

    def folders(self, where: str) -> set[str]:
        """The names of the folders below a path."""
        try:
            return {name.rpartition("/")[2] for name in self.files.ls(where)}
        except FileNotFoundError:
            return set()


def is_second_part(environ: Environ) -> bool:
    """Returns whether a request is the second part of an upload."""
    return "partNumber=2" in environ["QUERY_STRING"].split("&")


@contextmanager
def object_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """An open store with a bucket, and the environment by which servers find it."""
    store = ObjectStore()
    store.open()
    for name in os.environ:
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    for name, value in {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{store.port}",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }.items():
        monkeypatch.setenv(name, value)
    forget_connections()
    store.files.mkdir(BUCKET)
    try:
        yield store
    finally:
        store.gate.is_over.set()
        store.shut()
        get_backend("s3").reset()
        forget_connections()


def forget_connections() -> None:
    """Has this process read the environment again: fsspec keeps what it has made of it before."""
    fsspec.get_filesystem_class("s3").clear_instance_cache()
