"""The health port of a worker: `/healthz` and `/metrics`, from threads of its own, so that a loop
that is blocked is reported and not just silent.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from jobline._arguments import refuse
from jobline._worker.health import Vitals, health_of, metrics_of

logger = logging.getLogger("jobline.worker")

# Seconds that a caller has for a request, and callers at a time; others are hung up on.
REQUEST_SECONDS = 5.0
CALLERS_MAX = 16
# Seconds between two beats of the loop.
BEAT_SECONDS = 0.5

_JSON = "application/json"
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class HealthServer:
    """Listens from its making on. Raises InvalidArgument if it cannot."""

    def __init__(self, host: str, port: int, vitals: Callable[[], Vitals]) -> None:
        try:
            self._server = _server_class(host)((host, port), _handler_of(vitals))
        except OSError as error:
            refuse("health_port", f"cannot listen on {host}:{port} ({_why(error)})")
        self._server.daemon_threads = True
        bound = self._server.server_address[1]
        self.address = f"[{host}]:{bound}" if ":" in host else f"{host}:{bound}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="jobline-health", daemon=True
        )

    def start(self) -> None:
        """Answers from now on."""
        self._thread.start()
        logger.info("health and metrics: http://%s/healthz, /metrics", self.address)

    def stop(self) -> None:
        """Listens no more."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()


class Health:
    """The health port of a worker, and the pulse of its loop, by which a blocked one is known.
    `vitals` gets the seconds since the last beat. Made in the loop.
    """

    def __init__(self, host: str, port: int, vitals: Callable[[float], Vitals]) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = HealthServer(host, port, lambda: vitals(time.monotonic() - self._beat_at))
        self._beat_at = time.monotonic()
        self._timer: asyncio.TimerHandle | None = None
        self.address = self._server.address

    def start(self) -> None:
        """Answers from now on."""
        self._beat()
        self._server.start()

    def stop(self) -> None:
        """Listens no more."""
        if self._timer is not None:
            self._timer.cancel()
        self._server.stop()

    def _beat(self) -> None:
        self._beat_at = time.monotonic()
        self._timer = self._loop.call_later(BEAT_SECONDS, self._beat)


class _Server(ThreadingHTTPServer):
    """Has a bound for callers at a time."""

    # Callers that are slow do not delay the end of the worker.
    block_on_close = False

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._places = threading.BoundedSemaphore(CALLERS_MAX)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        logger.debug("a caller of the health port went away: %r", sys.exception())


class _Server6(_Server):
    address_family = socket.AF_INET6


def _why(error: OSError) -> str:
    """Returns why nobody can listen, without the number of the operating system."""
    if error.errno == errno.EADDRINUSE:
        return "another program listens there; 0 has the system choose a port"
    return (error.strerror or str(error)).lower()


def _server_class(host: str) -> type[_Server]:
    return _Server6 if ":" in host else _Server


class _Timed(BaseHTTPRequestHandler):
    """Hangs up on a caller whose time is over."""

    timeout = REQUEST_SECONDS

    def setup(self) -> None:
        super().setup()
        # `timeout` is for each piece: one that sends a byte now and then would keep its place.
        self._end = threading.Timer(REQUEST_SECONDS, self._hang_up)
        self._end.daemon = True
        self._end.start()

    def finish(self) -> None:
        self._end.cancel()
        super().finish()

    def _hang_up(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _handler_of(vitals: Callable[[], Vitals]) -> type[BaseHTTPRequestHandler]:
    class Handler(_Timed):
        server_version = "jobline"
        sys_version = ""

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/healthz":
                status, answer = health_of(vitals())
                self._answer(status, _JSON, json.dumps(answer))
            elif path == "/metrics":
                self._answer(200, _TEXT, metrics_of(vitals()))
            else:
                self._answer(404, _JSON, '{"error":"there are /healthz and /metrics"}')

        def send_error(
            self, code: int, message: str | None = None, explain: str | None = None
        ) -> None:
            """Answers what is no GET: the base class knows methods by their functions."""
            code = 405 if code == 501 else code
            self.close_connection = True
            self._answer(code, _JSON, json.dumps({"error": f"HTTP {code}"}))

        def _answer(self, status: int, kind: str, text: str) -> None:
            data = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            if status == 405:
                self.send_header("Allow", "GET")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
            logger.debug(format, *args)

    return Handler
