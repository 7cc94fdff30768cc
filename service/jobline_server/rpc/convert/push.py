"""Converts pushes, the hottest call: payloads become one block of bytes, jobs become columns, and
no Python call is made per job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jobline.v1 import job_pb2, job_service_pb2
from jobline_server.engine import limits
from jobline_server.engine.columns import LotColumns
from jobline_server.engine.commands import Push, Refused
from jobline_server.engine.job_columns import NO_ROWS, JobColumns
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.producers import Call
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.values import AckLevel, JobOptions
from jobline_server.rpc.convert.columns import check_keys, columns_of
from jobline_server.rpc.convert.companions import needs_companions, refuse_alone
from jobline_server.rpc.convert.digests import digest_of, digest_of_push
from jobline_server.rpc.convert.options import OptionsTable, SharedOptions
from jobline_server.rpc.convert.parents import check_parents
from jobline_server.rpc.convert.phases import check_phased
from jobline_server.rpc.convert.rows import rows_of
from jobline_server.rpc.convert.spread import checked_spread, spread_out
from jobline_server.rpc.convert.ties import (
    groups_of,
    make_rows,
    ties_beside,
)
from jobline_server.rpc.limits import PUSH_BYTES_MAX
from jobline_server.rpc.validate import fields

_FIELDS = job_service_pb2.PushRequest.DESCRIPTOR.fields_by_name
_QUEUE = _FIELDS["queue"]
_OPTIONS = _FIELDS["options"]
_JOBS = _FIELDS["jobs"]
_PAYLOADS = _FIELDS["payloads"]
_ACK_LEVEL = _FIELDS["ack_level"]
_ATOMIC = _FIELDS["atomic"]
_DELAY, _RUN_AT = _FIELDS["delay"], _FIELDS["run_at"]
_REQUEST_ID = _FIELDS["request_id"]
_PRODUCER = _FIELDS["producer"]
_HEADER_COLUMNS, _JOB_KEYS = _FIELDS["header_columns"], _FIELDS["job_keys"]
_UNIQUE_KEYS = _FIELDS["unique_keys"]
_SPREAD = _FIELDS["spread"]
_GROUPS = _FIELDS["groups"]


class PushReader:
    """Makes commands of push requests; holds the table of options and the limits. `wall_ms` reads
    the clock, which is needed only where jobs start later.
    """

    __slots__ = ("_batch_bytes_max", "_default_level", "_options", "_payload_bytes_max", "_wall_ms")

    def __init__(
        self,
        options: OptionsTable,
        wall_ms: Callable[[], int],
        *,
        payload_bytes_max: int,
        default_level: AckLevel | None = None,
    ) -> None:
        self._options = options
        self._wall_ms = wall_ms
        self._default_level = default_level
        self._payload_bytes_max = payload_bytes_max
        self._batch_bytes_max = max(PUSH_BYTES_MAX, payload_bytes_max)

    def command(self, request: job_service_pb2.PushRequest) -> Push:
        """Returns the command of a request; consumes the request."""
        # Each access to a field of a message costs as much as all of these look-ups.
        given: dict[Any, Any] = dict(request.ListFields())
        queue = fields.queue_name(given.get(_QUEUE, ""))
        spread_ms = checked_spread(request) if _SPREAD in given else 0
        base = given[_OPTIONS].SerializeToString() if _OPTIONS in given else b""
        level = given.get(_ACK_LEVEL, 0)
        has_start = _DELAY in given or _RUN_AT in given
        shared = self._options.shared(base)
        command = Push(
            queue=queue,
            options=shared.options,
            run_at_ms=start_ms(request, self._wall_ms()) if has_start else 0,
            level=fields.enum_member(level, "ack_level", AckLevel) or self._default_level,
            atomic=given.get(_ATOMIC, True),
            shared_ties=shared.ties,
        )
        plain = len(given.get(_PAYLOADS, ()))
        if plain > limits.PUSH_PAYLOADS_MAX:
            raise fields.too_many("payloads", limits.PUSH_PAYLOADS_MAX)
        if _PRODUCER in given:
            command.calls = (_call_of(request),)
        elif _REQUEST_ID in given:
            _take_request_id(command, request)
        columns = None
        if _HEADER_COLUMNS in given or _JOB_KEYS in given:
            keys = given.get(_JOB_KEYS, ())
            columns = columns_of(given.get(_HEADER_COLUMNS, ()), keys, plain, command.options)
        if _JOBS in given:
            fields.at_most(given[_JOBS], "jobs", limits.PUSH_JOBS_MAX)
            self._take_rows(command, request, shared, columns)
        elif plain:
            payloads = command.payloads = _block_of(request, given)
            payloads.columns = columns
            self._check_sizes(payloads, payloads.bytes_max, payloads.bytes_of(0, plain), "payloads")
        else:
            raise fields.invalid("jobs", "a push needs jobs or payloads")
        if shared.ties is not NO_TIES or _UNIQUE_KEYS in given or _GROUPS in given:
            _tie_payloads(command, given, plain, shared.ties)
        if command.rows is not NO_ROWS or command.options.rules is not NO_RULES:
            _check_together(command, request, all_start=has_start or spread_ms > 0)
        if spread_ms:
            spread_out(command, spread_ms, self._wall_ms())
        return command

    def _check_sizes(self, payloads: Iterable[bytes], longest: int, total: int, field: str) -> None:
        """Checks the lengths of the longest payload and of all together."""
        if longest > self._payload_bytes_max:
            index = list(map(len, payloads)).index(longest)
            raise fields.too_large(
                f"{field}[{index}]", f"must be at most {self._payload_bytes_max} bytes"
            )
        if total > self._batch_bytes_max:
            raise fields.too_large(field, f"at most {self._batch_bytes_max} bytes in one push")

    def _take_rows(
        self,
        command: Push,
        request: job_service_pb2.PushRequest,
        shared: SharedOptions,
        beside: LotColumns | None,
    ) -> None:
        """Adds the jobs as columns, or as plain payloads where they differ in nothing else.
        `beside` is what the payloads of the request have of their own.
        """
        rows = rows_of(request)
        payloads, plain = rows.payloads, request.payloads[:]
        for listed, field in ((payloads, "jobs"), (plain, "payloads")):
            sizes = list(map(len, listed))
            self._check_sizes(listed, max(sizes, default=0), sum(sizes), field)
        # Unset options are serialised as b"", so no check for them is needed.
        options, ties, has_rules = self._options.overridden(shared, rows.overrides)
        keys, starts = rows.job_keys, rows.starts
        has_keys, has_starts = any(keys), any(starts)
        if has_keys:
            check_keys(keys, "jobs[{}].job_key")
        elif (
            not has_starts
            and not ties
            and not rows.parent_indexes
            and beside is None
            and not request.groups
            and not request.unique_keys
            and _go_together(options, command.options if plain else None)
            and not needs_companions(options[0].rules)
        ):
            command.shared_options = command.options
            command.options = options[0]
            command.payloads = Payloads.of(payloads + plain)
            command.listed = len(payloads)
            return
        command.payloads = Payloads.of(plain)
        command.payloads.columns = beside
        command.rows = JobColumns(payloads, options, keys if has_keys else [], [], ties)
        command.rows.has_rules = has_rules
        command.rows.parent_indexes = rows.parent_indexes
        if has_starts or command.run_at_ms:
            command.rows.run_at_ms = _moments(
                request.jobs, starts, command.run_at_ms, self._wall_ms()
            )


def _tie_payloads(command: Push, given: dict[Any, Any], count: int, shared: Ties) -> None:
    """Makes rows of the `count` payloads of a push, if they have ties: `shared` ones, or those that
    stand beside them.
    """
    groups = groups_of(given[_GROUPS], count) if _GROUPS in given else []
    ties = ties_beside(list(given.get(_UNIQUE_KEYS, ())), groups, count, shared)
    if not ties:
        return
    if len(ties) > limits.PUSH_JOBS_MAX:
        why = f"at most {limits.PUSH_JOBS_MAX} with a group, a unique key or jobs to wait for"
        raise fields.too_large("payloads", why)
    make_rows(command, ties)


def _check_together(
    command: Push, request: job_service_pb2.PushRequest, *, all_start: bool
) -> None:
    """Refuses jobs that ask for what does not go together."""
    if command.rows.ties or command.rows.parent_indexes:
        check_parents(command)
    if command.rows.has_rules or command.options.rules is not NO_RULES:
        check_phased(command)
        refuse_alone(command, request, all_start=all_start)


def _go_together(options: list[JobOptions], others: JobOptions | None) -> bool:
    """Returns whether all options are equal, also to `others` if given. Equal ones are mostly one
    object, so identity is compared first.
    """
    first = options[0] if others is None else others
    return all(each is first or each == first for each in options)


def _block_of(request: job_service_pb2.PushRequest, given: Iterable[Any]) -> Payloads:
    """Returns the payloads of a request. Clears all other fields, so that the serialised request is
    the block of payloads, and no payload becomes a Python object.
    """
    request.DiscardUnknownFields()
    for field in given:
        if field is not _PAYLOADS:
            request.ClearField(field.name)
    payloads = request.payloads
    return Payloads(request.SerializeToString(), len(payloads), map(len, payloads))


def _moments(
    rows: Sequence[job_pb2.NewJob],
    starts: Sequence[str | None],
    shared_ms: int,
    wall_ms: int,
) -> list[int]:
    """Returns when each job becomes READY; a job without a start takes that of the push."""
    moments = [shared_ms] * len(rows)
    for index, start in enumerate(starts):
        if start:
            try:
                moments[index] = start_ms(rows[index], wall_ms)
            except Refused as refused:
                raise fields.within(f"jobs[{index}]", refused) from None
    return moments


def start_ms(message: job_service_pb2.PushRequest | job_pb2.NewJob, wall_ms: int) -> int:
    """Returns when the jobs of a message become READY, in wall time; 0: at once."""
    start = message.WhichOneof("start")
    if start is None:
        return 0
    if start == "delay":
        delay_ms = fields.duration_ms(message.delay, "delay", 0, limits.DELAY_MS_MAX)
        return wall_ms + delay_ms if delay_ms else 0
    moment_ms = fields.moment_ms(message.run_at, "run_at")
    if moment_ms > wall_ms + limits.DELAY_MS_MAX:
        raise fields.invalid("run_at", "must be at most 400 days ahead")
    return moment_ms if moment_ms > wall_ms else 0


def _take_request_id(command: Push, request: job_service_pb2.PushRequest) -> None:
    """Adds the request id, and a digest that detects another call with the same id."""
    request_id = fields.key(request.request_id, "request_id", limits.REQUEST_ID_BYTES_MAX)
    if any(row.job_key for row in request.jobs) or any(request.job_keys):
        raise fields.invalid("request_id", "not together with job_key")
    command.request_id = request_id.encode()
    command.request_digest = digest_of_push(request)


def _call_of(request: job_service_pb2.PushRequest) -> Call:
    """Returns the producer's call. Clears `producer`, which is not part of the digest."""
    producer = request.producer
    if request.request_id:
        raise fields.invalid("producer", "not together with request_id")
    if len(producer.id) != limits.PRODUCER_ID_BYTES:
        raise fields.invalid("producer.id", f"must be {limits.PRODUCER_ID_BYTES} bytes")
    if not producer.sequence:
        raise fields.invalid("producer.sequence", "must be at least 1")
    if producer.answered_below > producer.sequence:
        raise fields.invalid("producer.answered_below", "must be at most producer.sequence")
    producer_id, sequence, below = producer.id, producer.sequence, producer.answered_below
    request.ClearField("producer")
    return Call(producer_id, sequence, below, digest_of(request))
