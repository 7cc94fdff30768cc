"""The app: puts all rooms together, and starts and stops them in the order listed here.

Only this module knows which store is used. It reads settings and has no rule of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.metadata import version

# Measures calls for metrics; no decision depends on it.
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from jobline_server.authentication import Authentication
from jobline_server.background.periodic import Background
from jobline_server.backup_port import check_destination, make_backups
from jobline_server.config import Settings
from jobline_server.doors import Doors, OwnDoors, tasks_of
from jobline_server.names import new_name
from jobline_server.optional_history import history_of
from jobline_server.optional_tracing import tracing_of
from jobline_server.periodic_tasks import make_tasks
from jobline_server.room_settings import call_limits, client_rates, default_level, runtime_settings
from jobline_server.rpc.admission import Admission
from jobline_server.rpc.guard import Guard
from jobline_server.rpc.services import Services, make_services
from jobline_server.rpc.test_service import TestControls
from jobline_server.runtime.backups import Backups
from jobline_server.runtime.clock import Clock, SystemClock
from jobline_server.runtime.core import Core
from jobline_server.runtime.opening import open_runtime
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.waiting import first_of
from jobline_server.storage.sqlite.directory import stores_in
from jobline_server.storage.sqlite.losses import Losses
from jobline_server.storage.sqlite.store import SqliteSettings
from jobline_server.telemetry.calls import CallMeters
from jobline_server.telemetry.log import logger
from jobline_server.telemetry.losses import report_damage, report_loss

if TYPE_CHECKING:
    from jobline_server.http_port import HttpApp
    from jobline_server.runtime.exporter import Exporter

LOG = logger("app")
VERSION = version("jobline-server")

CALLS_SECONDS = 2.0  # for open calls to end, at a stop

T = TypeVar("T")
MakeTests = Callable[[Runtime, Background], TestControls]


class Server:
    """A server in the running loop. `start` opens it, `stop` closes it; `stop` may be called twice,
    and after a failed start. `clock`: default that of the machine. `doors`: where it is reached,
    default as the settings say. `tests`: makes what serves TestService; without, it is refused.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock | None = None,
        doors: Doors | None = None,
        tests: MakeTests | None = None,
    ) -> None:
        self.settings = settings
        self.clock: Clock = clock or SystemClock()
        self._doors: Doors = doors or OwnDoors(settings)
        self._make_tests = tests
        self.transport, self.scheme = self._doors.transport, self._doors.scheme
        self.addresses: list[str] = []
        self.http = ""
        self.meters = CallMeters()
        self.admission = Admission(call_limits(settings), self.meters)
        self._runtime: Runtime | None = None
        self._services: Services | None = None
        self._background: Background | None = None
        self._app: HttpApp | None = None
        self.authentication = Authentication(settings)
        self.exporter: Exporter | None = None
        self.tracing = tracing_of(settings, VERSION)
        self.backups: Backups | None = None
        self._hastened = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None

    @property
    def failed(self) -> asyncio.Future[None]:
        """Returns a future that fails when its store did: the process must stop then."""
        return self.runtime.failed

    def with_core(self, call: Callable[[Core], None]) -> None:
        """Calls a function with its core; raises before `start`."""
        call(self.runtime.core)

    @property
    def services(self) -> Services:
        """Returns the services; raises before `start`."""
        return _started(self._services)

    @property
    def background(self) -> Background:
        """Returns the periodic tasks; raises before `start`."""
        return _started(self._background)

    @property
    def runtime(self) -> Runtime:
        """Returns the runtime; raises before `start`."""
        return _started(self._runtime)

    async def start(self) -> None:
        """Opens everything. If a step fails, closes what the steps before have opened."""
        order = (
            self.authentication.read,
            self._open_runtime,
            self._start_background,
            self._serve_grpc,
            self._serve_http,
            self._announce_serving,
        )
        try:
            for step in order:
                await step()
        except BaseException:
            self.hasten()
            await self.stop()
            raise

    async def stop(self) -> None:
        """Closes everything gracefully: loses and repeats no job, and uses up no attempt (G21)."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop())
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        order = (
            self._report_draining,
            self._drain_workers,
            self._end_calls,
            self._close_http,
            self._stop_background,
            self._close_runtime,
            self._close_exporter,
            self.authentication.close,
        )
        failure: Exception | None = None
        for step in order:
            try:
                await step()
            except Exception as error:
                LOG.exception("a step of the stop failed", step=step.__name__)
                failure = failure or error
        if failure is not None:
            raise failure

    def hasten(self) -> None:
        """Ends the time that `stop` gives workers to finish."""
        self._hastened.set()

    async def _open_runtime(self) -> None:
        settings = self.settings
        check_destination(settings)
        self.exporter = history_of(settings, self.clock)
        losses = Losses(settings.accept_loss, report_loss)
        room = SqliteSettings(settings.ballast_bytes, settings.low_space_bytes, losses)
        stores = stores_in(settings.data, room)
        try:
            self._runtime = await open_runtime(
                stores,
                shards=settings.shards,
                clock=self.clock,
                settings=runtime_settings(settings),
                new_name=new_name,
                report=report_damage,
                exporter=self.exporter,
            )
        except BaseException:
            # Their threads would keep the process alive.
            await stores.close()
            raise
        self.backups = make_backups(self._runtime.core, stores.copies, settings, VERSION)
        self._runtime.start()

    async def _start_background(self) -> None:
        runtime, moves = self.runtime, self.clock.moves
        tasks = make_tasks(runtime, self.settings, self.backups, version=VERSION, moves=moves)
        tasks += self.authentication.start(runtime, self.admission)
        tasks += tasks_of(self._doors, self.settings, self.clock.now())
        self._background = Background(tasks, runtime.core)
        self._background.start()

    async def _serve_grpc(self) -> None:
        guard = Guard(perf_counter, self.meters, new_name(), self.admission)
        guard.access, guard.replies_outlive = self.authentication.access, self.transport == "grpcio"
        self._services = make_services(
            self.runtime,
            guard,
            payload_bytes_max=int(self.settings.max_payload_bytes),
            default_level=default_level(self.settings),
            version=VERSION,
            transport=self.transport,
            client_rates=client_rates(self.settings, perf_counter),
            tests=self._make_tests and self._make_tests(self.runtime, self.background),
            backups=self.backups,
        )
        if self.tracing is not None:
            self._services = self.tracing.around(self._services)
        self.addresses = await self._doors.open_grpc(self._services, self.admission)

    async def _serve_http(self) -> None:
        if not self.settings.http:
            return
        # What the port is made of is a tenth of a start, and of the memory of an idle server.
        from jobline_server.http_port import make_app, make_pages_of
        from jobline_server.web.metrics import Parts

        access = self.authentication.access
        pages = make_pages_of(
            self.runtime,
            self.meters,
            self.background.records,
            Parts(self.exporter, access, self._doors.tls, self.tracing, self.backups),
            version=VERSION,
            transport=self.transport,
            is_ready=self._is_ready,
        )
        parts = self.settings, pages, self.services, self.runtime, self.admission
        self._app = make_app(*parts, self.addresses[0], version=VERSION, access=access)
        self.http = await self._doors.open_http(self._app)

    async def _announce_serving(self) -> None:
        self.runtime.core.loops.changed = self._report_health
        self._report_health()

    def _report_health(self) -> None:
        """Sets the health service to SERVING, unless work is failing or the server stops."""
        is_well = self._stopping is None and not self.runtime.broken()
        self.services.health.set_serving(is_well)

    def _is_ready(self) -> bool:
        return self._services is not None and self._services.health.serving

    async def _report_draining(self) -> None:
        if self._services is not None:
            self._report_health()

    async def _drain_workers(self) -> None:
        """Waits until workers have finished, `hasten` is called, or `drain_seconds` are over."""
        if self._runtime is None or self._runtime.failed.done():
            return
        draining = self._runtime.drain(seconds=self.settings.drain_seconds)
        await first_of(draining, self._hastened.wait())

    async def _end_calls(self) -> None:
        """Takes no new calls; ends calls that only wait, and waits for the others."""
        if self._runtime is not None:
            self._runtime.streams.end_all()
        self.admission.end_waiting_calls()
        await self._doors.close_grpc(self._services, CALLS_SECONDS)

    async def _close_http(self) -> None:
        await self._doors.close_http(self._app)
        if self._app is not None:
            self._app.close()

    async def _stop_background(self) -> None:
        if self.backups is not None:
            await self.backups.stop()
        if self._background is not None:
            # A run under way might wait for ever on a full disk, or pause after each write.
            self.runtime.stop_waiting()
            await self._background.stop()

    async def _close_runtime(self) -> None:
        if self._runtime is not None:
            await self._runtime.stop()

    async def _close_exporter(self) -> None:
        if self.exporter is not None:
            await self.exporter.stop()
        if self.tracing is not None:
            await self.tracing.stop()


def _started(part: T | None) -> T:
    if part is None:
        raise RuntimeError("the server was not started")
    return part
