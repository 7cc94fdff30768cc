"""Random calls about batches, schedules and operations, beside those of `lives`.

Callbacks of batches go to a queue that nothing else touches, with the batch in their payload: so
it can be counted how often each was pushed.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from jobline.v1 import batch_service_pb2 as pb
from tests.server.all_options import QUEUES, SPANS
from tests.server.lives import Life

CALLBACKS = "callbacks"
KINDS = {"onSuccess": "success", "onComplete": "complete", "onFirstDeath": "first_death"}
SCHEDULES = ["s1", "s2", "s3"]
TIMINGS: list[dict[str, Any]] = [
    {"every": "5s"},
    {"every": "40s", "immediately": True},
    {"cron": "* * * * *", "timeZone": "Europe/Berlin"},
    {"cron": "*/7 * * * * *", "limit": "3"},
]
# Batches that jobs are pushed into: the newest ones.
BATCHES = 6


class OtherLife:
    """Makes a `Life` call what it does not by itself."""

    def __init__(self, random: Random, life: Life) -> None:
        self._random = random
        self._life = life
        self.created: list[str] = []
        life._steps |= {
            self.create_batch: 1,
            self.change_batch: 1,
            self.put_schedule: 1,
            self.change_schedule: 1,
            self.undo: 2,
        }

    async def create_batch(self) -> None:
        """Creates a batch with some callbacks, perhaps in another one."""
        draw, name = self._random, f"b{len(self.created)}"
        asked: dict[str, Any] = {
            field: {"queue": CALLBACKS, "text": f"{name} {kind}"}
            for field, kind in KINDS.items()
            if draw.random() < 0.8
        }
        if self.created and draw.random() < 0.3:
            asked["parentId"] = draw.choice(self.created)
        reply = await self._life.call("BatchService/CreateBatch", name=name, **asked)
        if reply is not None:
            self.created.append(str(reply.batch.id))
            self._life.batches[:] = self.created[-BATCHES:]

    async def change_batch(self) -> None:
        """Closes, cancels or looks at a batch."""
        if not self.created:
            return
        draw = self._random
        [verb] = draw.choices(["Close", "Cancel", "Get", "List"], [6, 1, 1, 1])
        if verb == "List":
            await self._life.call(
                "BatchService/ListBatches", pageSize=3, states=[draw.choice([1, 2, 3])]
            )
            return
        await self._life.call(f"BatchService/{verb}Batch", id=draw.choice(self.created))

    async def put_schedule(self) -> None:
        """Creates a schedule, or changes it."""
        draw = self._random
        name, timing = draw.choice(SCHEDULES), draw.choice(TIMINGS)
        options: dict[str, Any] = {"ttl": draw.choice(SPANS)} if draw.random() < 0.3 else {}
        settings = timing | {
            "queue": draw.choice(QUEUES),
            "overlap": draw.choice([1, 2, 3, 4]),
            "missed": draw.choice([1, 2, 3]),
            "job": {"text": "by a schedule", "options": options},
        }
        rpc = "ScheduleService/CreateSchedule"
        await self._life.call(rpc, schedule=name, settings=settings, upsert=draw.random() < 0.7)

    async def change_schedule(self) -> None:
        """Pauses, resumes, triggers, deletes or looks at a schedule."""
        draw = self._random
        verbs = {"Pause": 2, "Resume": 3, "Trigger": 4, "Delete": 1, "Get": 1, "Preview": 1}
        [verb] = draw.choices([*verbs], [*verbs.values()])
        await self._life.call(f"ScheduleService/{verb}Schedule", schedule=draw.choice(SCHEDULES))

    async def undo(self) -> None:
        """Undoes one of the last operations, or tries it."""
        draw = self._random
        listed = await self._life.call("AdminService/ListOperations", pageSize=20)
        if listed is not None and listed.operations:
            chosen = draw.choice(listed.operations).id
            dry_run = draw.random() < 0.3
            await self._life.call("AdminService/UndoOperation", operationId=chosen, dryRun=dry_run)

    async def check(self) -> None:
        """Each callback was pushed once if its batch says so, and else never; what has ended of a
        batch is all of it once it is complete.
        """
        pushed = await self._callbacks()
        for batch_id in self.created:
            batch = (await self._life.call("BatchService/GetBatch", id=batch_id)).batch
            for kind in KINDS.values():
                count = pushed[f"{batch.name} {kind}"]
                asked = getattr(batch, f"{kind}_called")
                assert count <= 1, (batch, kind)
                assert not count or asked, (batch, kind)
            ended = batch.done + batch.dead + batch.cancelled + batch.expired + batch.deleted
            assert ended <= batch.total
            assert batch.state != pb.BATCH_STATE_COMPLETE or ended == batch.total, batch

    async def _callbacks(self) -> Counter[str]:
        pushed: Counter[str] = Counter()
        token = ""
        while True:
            asked: dict[str, Any] = {"filter": {"queue": CALLBACKS}, "pageToken": token}
            page: Any = await self._life.call(
                "JobAdminService/ListJobs", **asked, pageSize=1_000, includePayloads=True
            )
            assert page is not None
            pushed.update(job.payload.decode() for job in page.jobs)
            token = page.next_page_token
            if not token:
                return pushed
