"""Every option of jobs, queues and groups, each with some good values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

QUEUES = ["plain", "fair", "limited", "other"]
GROUPS = ["g1", "g2", "g3"]
KEYS = ["k1", "k2", "k3"]
LIMITERS = ["api", "disk"]
NAMES = ["n1", "n2"]
SPANS = ["1s", "2.5s", "30s", "600s"]
UNIQUE_MODES = range(1, 9)
POLICIES = range(1, 5)
FIRST_LATER_ID = 1 << 44
"""An id that no job has."""

OPTIONS: dict[str, Sequence[Any]] = {
    "name": NAMES,
    "contentType": ["application/json"],
    "headers": [{"a": "b"}, {"traceparent": "00-1"}],
    "priority": [-1, 0, 5],
    "lease": SPANS,
    "maxAttempts": [0, 1, 2],
    "backoff": [{"kind": 1, "base": "1s"}, {"delays": ["1s", "2s"]}, {"jitter": 0.5}],
    "maxStalls": [0, 2],
    "retention": [{"removeOnComplete": True}, {"age": "60s"}, {"count": "1"}],
    "lifo": [True],
    "ttl": SPANS,
    "timeout": SPANS,
    "delivery": [1, 2],
    "uniqueKey": KEYS,
    "uniqueMode": UNIQUE_MODES,
    "uniqueTtl": SPANS,
    "uniqueMaxWait": SPANS,
    "group": GROUPS,
    "sticky": [True],
    "onDeadHead": [1, 2],
    "cost": [1, 3],
    "limiters": [["api"], ["api", "disk"]],
    "phases": [["p"], ["p", "q"]],
    "tags": [["t"], ["t", "u"]],
    "minWorkerVersion": ["1.2"],
    "slots": [1, 2],
    "onDependencyFailure": POLICIES,
    "blockTimeout": SPANS,
}
MEANS_NOTHING_WITHOUT = {
    "uniqueMode": "uniqueKey",
    "uniqueTtl": "uniqueKey",
    "uniqueMaxWait": "uniqueKey",
    "sticky": "group",
    "onDeadHead": "group",
    "onDependencyFailure": "dependsOn",
    "blockTimeout": "dependsOn",
}
SETTINGS: dict[str, Sequence[Any]] = {
    "lease": SPANS,
    "maxAttempts": [1, 3],
    "backoff": [{"base": "1s"}],
    "maxStalls": [0, 3],
    "retention": [{"removeOnFail": True}, {"age": "60s", "count": "2"}],
    "minAckLevel": [1, 2, 3],
    "maxWaiting": ["5", "10000"],
    "nonRetryableErrorTypes": [["Boom"]],
    "ttl": SPANS,
    "expiredToDead": [True, False],
    "timeout": SPANS,
    "rate": [{"rate": 5, "period": "1s"}, {"rate": 1000, "period": "1s", "burst": 2000}],
    "concurrency": [1, 50],
    "maxWaitingBytes": ["100", "1000000"],
    "delivery": [1, 2],
    "deadLetters": [{"autoRetry": True, "autoRetryFirstDelay": "86400s"}, {"maxBytes": "2000"}],
    "disconnectGrace": SPANS,
    "group": [{"concurrency": 2}, {"maxWaiting": 5}, {"onDeadHead": 2}, {"weight": 3}],
    "uniqueMode": UNIQUE_MODES,
    "uniqueTtl": SPANS,
    "uniqueMaxWait": SPANS,
    "onDependencyFailure": POLICIES,
    "blockTimeout": SPANS,
    "fair": [True, False],
}
GROUP_SETTINGS: dict[str, Sequence[Any]] = {
    "concurrency": [1, 3],
    "maxWaiting": [5, 1000],
    "onDeadHead": [1, 2],
    "weight": [1, 10],
}
FILTERS: Sequence[dict[str, Any]] = [
    {"states": [1]},
    {"states": [2]},
    {"states": [3]},
    {"states": [6]},
    {"tags": ["t"]},
    {"group": "g1"},
    {"name": "n1"},
]
