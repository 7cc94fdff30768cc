"""Puts all services together: servicers, the guard around them, one table by path."""

from __future__ import annotations

from dataclasses import dataclass, replace

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from jobline.v1 import (
    admin_service_pb2,
    batch_service_pb2,
    dead_letter_service_pb2,
    flow_service_pb2,
    job_admin_service_pb2,
    job_service_pb2,
    limiter_service_pb2,
    queue_service_pb2,
    schedule_service_pb2,
    test_service_pb2,
    webhook_service_pb2,
)
from jobline_server.engine.values import AckLevel
from jobline_server.rpc import externalscaler_pb2
from jobline_server.rpc.admin_service import AdminService
from jobline_server.rpc.admission import Admission
from jobline_server.rpc.batch_service import BatchService
from jobline_server.rpc.client_rates import ClientRates
from jobline_server.rpc.convert.options import OptionsTable
from jobline_server.rpc.convert.push import PushReader
from jobline_server.rpc.dead_letter_service import DeadLetterService
from jobline_server.rpc.external_scaler import ExternalScaler
from jobline_server.rpc.flow_service import FlowService
from jobline_server.rpc.guard import Guard, Handler, UnaryAnswer
from jobline_server.rpc.health import HealthService
from jobline_server.rpc.job_admin_service import JobAdminService
from jobline_server.rpc.job_service import JobService
from jobline_server.rpc.job_stream import BROKEN_SECONDS
from jobline_server.rpc.limiter_service import LimiterService
from jobline_server.rpc.queue_service import QueueService
from jobline_server.rpc.reflection import V1, V1ALPHA, ReflectionService
from jobline_server.rpc.schedule_service import ScheduleService
from jobline_server.rpc.test_service import RefusedTests, TestControls, TestService
from jobline_server.rpc.webhook_service import WebhookService
from jobline_server.runtime.backups import Backups
from jobline_server.runtime.runtime import Runtime

TEST_BROKEN_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Services:
    """Handlers and descriptors by path, `/package.Service/Method`, and the health service.
    `hooked_push` is the handler of Push for incoming webhooks, which show a signature and no token;
    None where Push is the same for everybody.
    """

    handlers: dict[str, Handler]
    methods: dict[str, MethodDescriptor]
    health: HealthService
    hooked_push: UnaryAnswer | None = None


def make_services(  # noqa: PLR0913  # what the services of a server are made of
    runtime: Runtime,
    guard: Guard,
    *,
    payload_bytes_max: int,
    version: str,
    transport: str,
    default_level: AckLevel | None = None,
    client_rates: ClientRates | None = None,
    tests: TestControls | None = None,
    backups: Backups | None = None,
) -> Services:
    """Returns all services over one runtime. Without `tests` TestService is refused, and listed
    nowhere.
    """
    reader = PushReader(
        OptionsTable(),
        runtime.core.wall_ms,
        payload_bytes_max=payload_bytes_max,
        default_level=default_level,
    )
    # In tests a worker stops hundreds of times, and its connection is one of this machine.
    broken_seconds = BROKEN_SECONDS if tests is None else TEST_BROKEN_SECONDS
    workers = JobService(
        runtime, reader, guard.admission, client_rates, broken_seconds=broken_seconds
    )
    admin = AdminService(runtime, version=version, transport=transport, backups=backups)
    jobs = JobAdminService(runtime, payload_bytes_max=payload_bytes_max)
    served: list[tuple[ServiceDescriptor, object]] = [
        (_service(job_service_pb2), workers),
        (_service(job_admin_service_pb2), jobs),
        (_service(queue_service_pb2), QueueService(runtime)),
        (_service(limiter_service_pb2), LimiterService(runtime)),
        (_service(schedule_service_pb2), ScheduleService(runtime, reader)),
        (_service(batch_service_pb2), BatchService(runtime, reader)),
        (_service(webhook_service_pb2), WebhookService(runtime)),
        (_service(flow_service_pb2), FlowService(runtime, reader, client_rates)),
        (_service(dead_letter_service_pb2), DeadLetterService(runtime)),
        (_service(admin_service_pb2), admin),
        (_service(externalscaler_pb2), ExternalScaler(runtime, guard.admission)),
    ]
    if tests is not None:
        served.append((_service(test_service_pb2), TestService(tests, guard.admission.waiters)))
    services = _with_health(guard, served, has_tests=tests is not None)
    if guard.access is None:
        return services
    return replace(services, hooked_push=_push_of(guard, workers))


def _push_of(guard: Guard, workers: JobService) -> UnaryAnswer:
    """Returns the handler of Push that asks nobody who calls."""
    service = _service(job_service_pb2)
    meter = guard.meters.of(service.full_name, "Push")
    return guard.unary("", service.methods_by_name["Push"], workers.Push, meter, None)


def _with_health(
    guard: Guard, served: list[tuple[ServiceDescriptor, object]], *, has_tests: bool
) -> Services:
    """Returns the table of these services, of health, and of the reflection of them all."""
    names = [descriptor.full_name for descriptor, _ in served]
    health = HealthService(names, guard.admission)
    health_descriptor = _service(health_pb2)
    served.append((health_descriptor, health))
    handlers: dict[str, Handler] = {}
    for descriptor, servicer in served:
        handlers |= _of(guard, descriptor, servicer)
    # Answered however many calls are open: else a supervisor would kill a server that is only busy.
    # Watch, which stays open, counts with the others.
    uncounted = _of(replace(guard, admission=Admission()), health_descriptor, health)
    handlers |= {path: made for path, made in uncounted.items() if not path.endswith("/Watch")}
    methods = {
        f"/{descriptor.full_name}/{method.name}": method
        for descriptor, _ in served
        for method in descriptor.methods
    }
    if not has_tests:
        handlers |= _of(guard, _service(test_service_pb2), RefusedTests())
    reflection = ReflectionService([*names, health_descriptor.full_name, V1, V1ALPHA])
    for name in (V1, V1ALPHA):
        table = guard.handlers(_service(reflection_pb2), reflection, name)
        handlers.update({f"/{name}/{method}": handler for method, handler in table.items()})
    return Services(handlers, methods, health)


def _of(guard: Guard, service: ServiceDescriptor, servicer: object) -> dict[str, Handler]:
    """Returns the handlers of a service by path."""
    methods = guard.handlers(service, servicer)
    return {f"/{service.full_name}/{method}": handler for method, handler in methods.items()}


def _service(module: object) -> ServiceDescriptor:
    """Returns the only service of a generated module."""
    (service,) = module.DESCRIPTOR.services_by_name.values()  # type: ignore[attr-defined]  # a module
    return service  # type: ignore[no-any-return]  # of untyped packages too
