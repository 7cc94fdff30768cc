"""Reads what KEDA asks: the metadata of a trigger, which are texts by name.

KEDA passes on all metadata of the trigger, also what it needs itself to find this server. A key
that nobody knows is refused: it may be a misspelt one, and would be ignored for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from jobline_server.engine.commands import Refused
from jobline_server.rpc import externalscaler_pb2 as pb
from jobline_server.rpc.validate import fields

QUEUE, METRIC = "queue", "metric"
TARGET, ACTIVATION = "targetBacklogPerReplica", "activationBacklog"
KNOWN = frozenset({QUEUE, METRIC, TARGET, ACTIVATION})
# How KEDA finds and calls the server.
OF_KEDA = frozenset(
    {
        *("scalerAddress", "enableTLS", "unsafeSsl", "caCert"),
        *("tlsCertFile", "tlsClientCert", "tlsClientKey"),
    }
)
# KEDA has put the value of a variable of the worker's container there.
FROM_ENVIRONMENT = "FromEnv"

TARGET_MIN, TARGET_MAX = 0.001, 1e9
ACTIVATION_MAX = 1_000_000_000
NUMBER_CHARACTERS_MAX = 32


class ScalerMetric(Enum):
    """What a queue is scaled by."""

    BACKLOG = "backlog"
    OLDEST_AGE = "oldest_age"
    WORKERS_NEEDED = "workers_needed"


# How much of a metric one replica is for, where the trigger does not say: jobs, seconds, workers.
TARGETS = {
    ScalerMetric.BACKLOG: 10.0,
    ScalerMetric.OLDEST_AGE: 10.0,
    ScalerMetric.WORKERS_NEEDED: 1.0,
}


@dataclass(frozen=True, slots=True)
class Trigger:
    """What a trigger asks for: `target` of the metric for each replica, and at least one while the
    queue has more work than `activation` jobs.
    """

    queue: str
    metric: ScalerMetric
    target: float
    activation: int


def trigger_of(request: pb.ScaledObjectRef) -> Trigger:
    """Returns the trigger of a request; raises `Refused`, which names the key."""
    given = given_in(request.scalerMetadata)
    metric = _metric(given.get(METRIC, ""))
    target = TARGETS[metric]
    if given.get(TARGET):
        target = _number(given[TARGET], TARGET, TARGET_MIN, TARGET_MAX)
    activation = _number(given.get(ACTIVATION) or "0", ACTIVATION, 0, ACTIVATION_MAX)
    if not activation.is_integer():
        raise fields.invalid(path_of(ACTIVATION), "must be a whole number")
    queue = fields.queue_name(given.get(QUEUE, ""), path_of(QUEUE))
    return Trigger(queue, metric, target, int(activation))


def metric_name(metric: ScalerMetric) -> str:
    """Returns the name by which KEDA knows a metric; dashes, because it becomes part of others."""
    return f"jobline-{metric.value.replace('_', '-')}"


def check_metric_name(request: pb.GetMetricsRequest, trigger: Trigger) -> str:
    """Returns the name of the metric that is asked for; raises `Refused` if it is another one than
    that of the trigger.
    """
    name = metric_name(trigger.metric)
    if request.metricName not in {"", name}:
        raise fields.invalid("metricName", f"this trigger has the metric {name}")
    return name


def path_of(key: str) -> str:
    """Returns the path of a key, for errors."""
    return f"scalerMetadata.{key}"


def given_in(metadata: Mapping[str, str]) -> dict[str, str]:
    """Returns the values by our own keys; raises `Refused` for a key that nobody knows."""
    found: dict[str, str] = {}
    for given in metadata:
        key = given.removesuffix(FROM_ENVIRONMENT)
        if key in KNOWN:
            if key in found:
                raise fields.invalid(path_of(given), f"there is {key} already")
            found[key] = metadata[given]
        elif key not in OF_KEDA:
            raise _unknown(given)
    return found


def _unknown(key: str) -> Refused:
    shown = key if len(key) <= 64 and key.isprintable() else "…"
    return fields.invalid(path_of(shown), f"no such key; there are {', '.join(sorted(KNOWN))}")


def _metric(value: str) -> ScalerMetric:
    try:
        return ScalerMetric(value or ScalerMetric.BACKLOG)
    except ValueError:
        known = ", ".join(metric.value for metric in ScalerMetric)
        raise fields.invalid(path_of(METRIC), f"must be one of {known}") from None


def _number(value: str, key: str, minimum: float, maximum: float) -> float:
    try:
        number = float(value) if len(value) <= NUMBER_CHARACTERS_MAX else float("nan")
    except ValueError:
        number = float("nan")
    return fields.real(number, path_of(key), minimum, maximum)
