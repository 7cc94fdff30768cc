"""Random lives: calls over a socket that put all options of jobs, queues and groups together.

What they are is drawn from a `Random`. Each option is good by itself; what becomes of several
together is the server's to say, by an answer or a definite refusal.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any

from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from tests.server.all_options import (
    FILTERS,
    FIRST_LATER_ID,
    GROUP_SETTINGS,
    GROUPS,
    KEYS,
    LIMITERS,
    MEANS_NOTHING_WITHOUT,
    NAMES,
    OPTIONS,
    QUEUES,
    SETTINGS,
    SPANS,
)
from tests.server.calling import PACKAGE, BytesChannel, method_of


class Life:
    """Random calls to one server. `leased` are the leases that it got and has not settled."""

    def __init__(self, random: Random, channel: BytesChannel) -> None:
        self._random = random
        self._channel = channel
        self.leased: list[dict[str, str]] = []
        self.ids: list[str] = []
        self.batches: list[str] = []
        self.codes: dict[str, int] = {}
        """How often each call was answered by each code: `Push OK`."""
        self._steps: dict[Callable[[], Awaitable[Any]], int] = {
            self.push: 10,
            self.pull: 6,
            self.settle: 8,
            self.report: 3,
            self.set_up: 2,
            self.operate: 4,
            self.ask: 2,
        }

    async def step(self) -> None:
        """Makes one call."""
        [step] = self._random.choices([*self._steps], [*self._steps.values()])
        await step()

    async def call(self, rpc: str, **fields: Any) -> Any:
        """Makes a call; returns its reply, or None if it was refused."""
        method = method_of(rpc)
        request: Message = ParseDict(fields, GetMessageClass(method.input_type)())
        reply_class = GetMessageClass(method.output_type)
        code = "OK"
        try:
            raw = await self._channel.unary_unary(f"/{PACKAGE}.{rpc}")(
                request.SerializeToString(), timeout=30
            )
            return reply_class.FromString(raw)
        except aio.AioRpcError as error:
            code = error.code().name
            if code in {"UNKNOWN", "INTERNAL", "DATA_LOSS", "UNAVAILABLE", "DEADLINE_EXCEEDED"}:
                raise AssertionError(f"{rpc} {fields}: {code} {error.details()}") from error
            return None
        finally:
            key = f"{method.name} {code}"
            self.codes[key] = self.codes.get(key, 0) + 1

    async def push(self) -> None:
        """Pushes some jobs and payloads, with columns beside them."""
        draw = self._random
        rows = [self._row(index) for index in range(draw.choice([0, 0, 1, 3]))]
        count = draw.choice([0, 1, 1, 4]) if rows else draw.choice([1, 1, 4])
        more: dict[str, Any] = {}
        if draw.random() < 0.5:
            more["options"] = self._options(4)
        if count and draw.random() < 0.2:
            more["groups"] = [draw.choice([*GROUPS, ""]) for _ in range(count)]
        if count and draw.random() < 0.2:
            more["uniqueKeys"] = [draw.choice([*KEYS, ""]) for _ in range(count)]
        if count and draw.random() < 0.2:
            more["jobKeys"] = [f"j{draw.randrange(50)}" for _ in range(count)]
        if count and draw.random() < 0.2:
            values = [draw.choice(["", "v"]) for _ in range(count)]
            more["headerColumns"] = [{"key": "h", "values": values}]
        starts: list[dict[str, Any]] = [{}, {}, {"delay": draw.choice(SPANS)}, {"spread": "10s"}]
        more |= draw.choice(starts)
        more |= draw.choice([{}, {"atomic": draw.random() < 0.5}])
        more |= draw.choice([{}, {"ackLevel": draw.randrange(4)}])
        reply = await self.call(
            "JobService/Push",
            queue=draw.choice(QUEUES),
            jobs=rows,
            payloads=["YQ=="] * count,
            **more,
        )
        if reply is not None:
            self.ids += [str(reply.first_id + at) for at in range(min(reply.count, 2))]
            del self.ids[:-50]

    def _row(self, index: int) -> dict[str, Any]:
        draw = self._random
        row: dict[str, Any] = {"text": "t"}
        if draw.random() < 0.8:
            row["options"] = self._options(5)
        if index and draw.random() < 0.2:
            row["dependsOnIndexes"] = [draw.randrange(index)]
        if draw.random() < 0.2:
            row["jobKey"] = f"j{draw.randrange(50)}"
        return row | draw.choice([{}, {}, {"delay": draw.choice(SPANS)}])

    def _options(self, most: int) -> dict[str, Any]:
        """Returns some options, mostly with what each of them is about."""
        options = self._some(OPTIONS, most) | self._parents()
        if self.batches and self._random.random() < 0.4:
            options["batchId"] = self._random.choice(self.batches)
        for name in [*options]:
            about = MEANS_NOTHING_WITHOUT.get(name)
            if about == "dependsOn" and self.ids:
                options.setdefault(about, self.ids[-1:])
            elif about in OPTIONS and self._random.random() < 0.9:
                options.setdefault(about, self._random.choice(OPTIONS[about]))
        return options

    def _parents(self) -> dict[str, Any]:
        if not self.ids or self._random.random() < 0.8:
            return {}
        return {"dependsOn": self._random.sample(self.ids, min(len(self.ids), 2))}

    def _some(self, values: dict[str, Sequence[Any]], most: int) -> dict[str, Any]:
        draw = self._random
        names = draw.sample([*values], draw.randrange(most + 1))
        return {name: draw.choice(values[name]) for name in names}

    async def pull(self) -> None:
        """Takes some jobs."""
        draw = self._random
        wishes: list[dict[str, Any]] = [{}, {}, {"names": NAMES[:1]}, {"lease": "5s"}]
        more = draw.choice(wishes)
        reply = await self.call(
            "JobService/Pull",
            queues=[{"queue": queue} for queue in draw.sample(QUEUES, 2)],
            maxJobs=draw.choice([1, 3, 20]),
            worker=draw.choice(["w1", "w2"]),
            **more,
        )
        for job in reply.jobs if reply is not None else ():
            self.leased.append({"id": str(job.id), "delivery": str(job.delivery)})

    def _taken(self) -> list[dict[str, str]]:
        """Returns some leases; sometimes one is kept, to be settled another time."""
        draw = self._random
        draw.shuffle(self.leased)
        count = draw.choice([1, 1, 5])
        taken, left = self.leased[:count], self.leased[count:]
        self.leased = left if draw.random() < 0.95 else left + taken
        return taken

    async def settle(self) -> None:
        """Ends attempts, in one of the ways that there are."""
        taken = self._taken()
        if not taken:
            return
        draw = self._random
        kind = draw.choice(["Ack", "Ack", "Fail", "Fail", "Release"])
        more: dict[str, Any] = {}
        if kind == "Ack":
            more = draw.choice([{}, {"result": "cg=="}])
        elif kind == "Fail":
            error = {"type": draw.choice(["Boom", "Other"]), "message": "m"}
            more = {"error": error, "then": draw.choice([0, 1, 2, 3])}
            more |= draw.choice([{}, {"retryAfter": "2s"}])
        else:
            more = {"why": draw.choice([1, 2, 3]), "delay": "1s"}
        await self.call(f"JobService/{kind}", items=[lease | more for lease in taken])

    async def report(self) -> None:
        """Says how far jobs have come."""
        draw = self._random
        if self.leased:
            reports: list[dict[str, Any]] = [
                {"phase": "p", "phaseResult": "cg=="},
                {"progress": 50, "message": "half"},
                {"checkpoint": "Yw=="},
                {"lease": "60s"},
                {"logs": {"lines": ["l"], "levels": [2]}},
                {"partial": "cA=="},
            ]
            item = draw.choice(self.leased) | draw.choice(reports)
            await self.call("JobService/Extend", items=[item])

    async def set_up(self) -> None:
        """Changes settings and limits."""
        draw = self._random
        queue = draw.choice(QUEUES)
        kind = draw.randrange(4)
        if kind == 0:
            names = draw.sample([*SETTINGS], draw.choice([1, 3]))
            given = {name: draw.choice(SETTINGS[name]) for name in names if draw.random() < 0.7}
            mask = ",".join(names)
            await self.call(
                "QueueService/UpdateQueue", queue=queue, settings=given, updateMask=mask
            )
        elif kind == 1:
            given = self._some(GROUP_SETTINGS, 2)
            await self.call(
                "QueueService/UpdateGroup",
                queue=queue,
                group=draw.choice(GROUPS),
                settings=given,
                updateMask=",".join(given) or "weight",
            )
        elif kind == 2:
            few: dict[str, Any] = {"concurrency": 2}
            limits = draw.choice([few, {"rate": {"rate": 100, "period": "1s"}}])
            await self.call("LimiterService/UpsertLimiter", limiter=draw.choice(LIMITERS), **limits)
        else:
            await self.call("LimiterService/DeleteLimiter", limiter=draw.choice(LIMITERS))

    async def operate(self) -> None:
        """Does to jobs, queues and groups what operators may."""
        kinds = [self._change_jobs, self._change_job, self._change_queue]
        [operate] = self._random.choices(kinds, [2, 2, 3])
        await operate()

    async def _change_jobs(self) -> None:
        draw = self._random
        chosen: dict[str, Any] = {"ids": [self._some_id()]}
        if draw.random() < 0.5:
            chosen = {"filter": {"queue": draw.choice(QUEUES)} | draw.choice(FILTERS)}
        verb = draw.choice(["Promote", "Cancel", "Retry", "Delete"])
        await self.call(f"JobAdminService/{verb}Jobs", jobs=chosen)

    async def _change_job(self) -> None:
        draw = self._random
        if draw.random() < 0.5:
            changes: list[dict[str, Any]] = [
                {"payload": "Yg=="},
                {"priority": 3},
                {"delay": "3s"},
                {"payload": "", "delay": "0s"},
            ]
            changed = draw.choice(changes)
            mask = ",".join(changed)
            await self.call(
                "JobAdminService/UpdateJob", id=self._some_id(), updateMask=mask, **changed
            )
            return
        queue = draw.choice(QUEUES)
        job_key = {"jobKey": {"queue": queue, "key": f"j{draw.randrange(50)}"}}
        unique_key = {"uniqueKey": {"queue": queue, "key": draw.choice(KEYS)}}
        await self.call("JobAdminService/ForgetKey", **draw.choice([job_key, unique_key]))

    async def _change_queue(self) -> None:
        draw = self._random
        queue, verb = draw.choice(QUEUES), draw.choice(["Pause", "Resume"])
        calls: list[tuple[str, dict[str, Any]]] = [
            (f"QueueService/{verb}Queue", {"queue": queue}),
            (f"QueueService/{verb}Group", {"queue": queue, "group": draw.choice(GROUPS)}),
            ("QueueService/CleanQueue", {"queue": queue, "states": [5], "olderThan": "0s"}),
            ("DeadLetterService/PurgeDeadJobs", {"filter": {"queue": queue}, "all": True}),
            ("QueueService/DrainQueue", {"queue": queue}),
            ("QueueService/DeleteQueue", {"queue": queue, "confirmQueue": queue, "force": True}),
        ]
        # What empties a queue is rare, or there would be nothing else to see.
        [(rpc, fields)] = draw.choices(calls, [8, 8, 4, 4, 1, 1])
        await self.call(rpc, **fields)

    def _some_id(self) -> str:
        return self._random.choice(self.ids) if self.ids else str(FIRST_LATER_ID)

    async def ask(self) -> None:
        """Looks at jobs and queues."""
        draw = self._random
        queue, job_id = draw.choice(QUEUES), self._some_id()
        calls: list[tuple[str, dict[str, Any]]] = [
            ("JobAdminService/GetJob", {"id": job_id}),
            ("JobAdminService/ExplainJob", {"id": job_id}),
            ("JobAdminService/ListJobs", {"filter": {"queue": queue}, "pageSize": 5}),
            ("QueueService/ListGroups", {"queue": queue, "pageSize": 5}),
            ("QueueService/GetQueue", {"queue": queue}),
            ("DeadLetterService/ListDeadJobs", {"filter": {"queue": queue}}),
            ("AdminService/GetStats", {}),
        ]
        rpc, fields = draw.choice(calls)
        await self.call(rpc, **fields)
