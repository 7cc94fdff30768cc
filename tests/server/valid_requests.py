"""A request of each RPC that is taken as it is, in protobuf JSON."""

from __future__ import annotations

from typing import Any

from tests.server.valid_schedules import VALID_SCHEDULES

ITEM = {"id": "8796093022209", "delivery": "5"}
SHOWN = {"tags": ["a", "b"], "phases": ["p", "q"]}
REPORTED = {"logs": {"lines": ["a", "b"], "levels": [2, 4]}, "phase": "p", "phaseResult": "YQ=="}
VALID: dict[str, dict[str, Any]] = {
    "JobService/Push": {
        "queue": "fuzz",
        "options": {"name": "n", "headers": {"a": "b"}, "lease": "5s", "priority": -3, **SHOWN},
        "jobs": [{"text": "t", "jobKey": "k", "delay": "1s", "options": {"maxAttempts": 2}}],
        "payloads": ["YQ==", "Yg=="],
        "headerColumns": [{"key": "a", "values": ["own", ""]}, {"key": "c", "values": ["é", "d"]}],
        "jobKeys": ["l", ""],
        "groups": ["g", ""],
        "uniqueKeys": ["u", ""],
        "ackLevel": 3,
    },
    "JobService/Pull": {"queues": [{"queue": "fuzz", "weight": 2}], "maxJobs": 3, "worker": "w"},
    "JobService/Ack": {"ids": ["1", "2"], "deliveries": ["1", "1"], "items": [ITEM]},
    "JobService/Fail": {"items": [ITEM | {"error": {"type": "E"}, "retryAfter": "1s"}]},
    "JobService/Release": {"items": [ITEM | {"delay": "1s", "why": 1}]},
    "JobService/Extend": {
        "items": [ITEM | {"lease": "5s", "progress": 5, "checkpoint": "YQ==", **REPORTED}]
    },
    "JobService/Stream": {
        "open": {"queues": [{"queue": "fuzz"}], "worker": {"id": "w"}},
        "settles": [{"seq": "1", "ackIds": ["1"], "ackDeliveries": ["1"]}],
        "logs": [ITEM | {"lines": ["a"], "levels": [2], "atMs": ["5"]}],
        "window": {"maxInFlight": 5},
    },
    "JobService/Wait": {"ids": ["1", "8796093022209"], "timeout": "1s"},
    "JobService/Watch": {"queues": ["fuzz"], "kinds": [1], "resumeToken": "0.0.0.0.0.0.0.0"},
    "JobAdminService/GetJob": {"id": "8796093022209"},
    "JobAdminService/ListJobs": {
        "filter": {"queue": "fuzz", "states": [3]},
        "pageSize": 5,
        "acceptsRuns": True,
    },
    "JobAdminService/GetJobLogs": {"id": "8796093022209", "after": "1", "minLevel": 2},
    "JobAdminService/ExplainJob": {"id": "8796093022209"},
    "QueueService/UpdateQueue": {
        "queue": "fuzz",
        "settings": {
            "lease": "5s",
            "maxWaiting": "10000",
            "retention": {"count": "5", "deleteAfter": "60s"},
        },
        "updateMask": "lease,maxWaiting",
    },
    "JobAdminService/UpdateJob": {
        "id": "8796093022209",
        "payload": "YQ==",
        "priority": 2,
        "delay": "5s",
        "updateMask": "payload,priority,delay",
    },
    "JobAdminService/ForgetKey": {"jobKey": {"queue": "fuzz", "key": "k"}},
    "QueueService/ListGroups": {"queue": "fuzz", "pageSize": 5, "namePrefix": "g"},
    "QueueService/UpdateGroup": {
        "queue": "fuzz",
        "group": "g",
        "settings": {"concurrency": 2, "maxWaiting": "5"},
        "updateMask": "concurrency,maxWaiting",
    },
    "QueueService/ListQueues": {
        "namePrefix": "f",
        "pageSize": 5,
        "orderBy": "activity desc",
    },
    "QueueService/GetQueueHistory": {
        "queue": "fuzz",
        "startTime": "2026-01-01T00:00:00Z",
        "endTime": "2026-01-01T01:00:00Z",
    },
    "QueueService/CleanQueue": {"queue": "fuzz", "states": [5], "olderThan": "1s"},
    "QueueService/DeleteQueue": {"queue": "fuzz", "confirmQueue": "fuzz", "force": True},
    "DeadLetterService/ListDeadJobs": {"filter": {"queue": "fuzz", "reasons": [1]}},
    "DeadLetterService/GetDeadLetterStats": {"queue": "fuzz"},
    "DeadLetterService/PurgeDeadJobs": {"filter": {"queue": "fuzz"}, "all": True},
    "AdminService/GetStats": {},
    "AdminService/Backup": {},
    "AdminService/GetBackup": {},
    "AdminService/ListWorkers": {"pageSize": 5, "queue": "fuzz"},
    "AdminService/ListOperations": {"pageSize": 5, "queue": "fuzz", "verb": "v", "principal": "p"},
    "AdminService/UndoOperation": {"operationId": "o", "reason": "r"},
    "AdminService/ListHandlers": {"pageSize": 5, "queue": "fuzz"},
}
for _name in ("Promote", "Cancel", "Retry", "Delete"):
    VALID[f"JobAdminService/{_name}Jobs"] = {"jobs": {"filter": {"queue": "fuzz"}, "ids": []}}
for _name in ("Upsert", "Get", "Empty", "Delete"):
    VALID[f"LimiterService/{_name}Limiter"] = {"limiter": "fuzz"}
VALID["LimiterService/UpsertLimiter"]["concurrency"] = 5
VALID["LimiterService/ListLimiters"] = {"pageSize": 5}
VALID |= VALID_SCHEDULES
for _name in ("Get", "Delete", "Test"):
    VALID[f"WebhookService/{_name}Webhook"] = {"webhook": "fuzz"}
VALID["WebhookService/CreateWebhook"] = {
    "webhook": "fuzz",
    "settings": {"url": "http://127.0.0.1:1/x?y=z", "queue": "mail-*", "tags": ["a"]},
    "secret": "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz",
}
VALID["WebhookService/UpdateWebhook"] = {
    "webhook": "fuzz",
    "settings": {"events": [6, 9], "names": ["n"], "disabled": True},
    "updateMask": "events,names,disabled",
}
VALID["WebhookService/RotateWebhookSecret"] = {"webhook": "fuzz", "reason": "r"}
VALID["WebhookService/ListWebhooks"] = {"pageSize": 5, "namePrefix": "f"}
VALID["WebhookService/ListWebhookDeliveries"] = {"webhook": "fuzz", "pageSize": 5}
VALID["BatchService/CreateBatch"] = {"name": "fuzz", "onComplete": {"queue": "fuzz", "text": "x"}}
for _name in ("Close", "Get", "Cancel"):
    VALID[f"BatchService/{_name}Batch"] = {"id": "1"}
VALID["FlowService/PushFlow"] = {
    "jobs": [
        {"queue": "fuzz", "job": {"text": "p", "options": {"name": "n"}}, "children": [1]},
        {"queue": "fuzz2", "job": {"data": "YQ==", "delay": "1s"}},
    ],
    "requestId": "f",
}
VALID["FlowService/GetFlow"] = {
    "id": "8796093022209",
    "maxJobs": 5,
    "maxDepth": 3,
    "includeResults": True,
}
VALID["BatchService/ListBatches"] = {"pageSize": 5, "tags": ["fuzz"], "states": [1]}
for _name in ("Get", "Pause", "Resume", "Limit", "Drain"):
    VALID[f"QueueService/{_name}Queue"] = {"queue": "fuzz"}
for _name in ("Pause", "Resume", "Limit"):
    VALID[f"QueueService/{_name}Group"] = {"queue": "fuzz", "group": "g"}
