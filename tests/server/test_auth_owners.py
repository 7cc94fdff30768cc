"""What belongs to queues without being a job: batches, schedules, flows, operations."""

from __future__ import annotations

from tests.server.two_queues import World

UNKNOWN = 8796093022299


async def test_a_batch_belongs_to_the_queues_of_its_callbacks(world: World) -> None:
    callback = {"queue": "theirs", "text": "done"}
    created = await world.ask(world.root, "BatchService/CreateBatch", onComplete=callback)
    theirs = created.batch.id
    for rpc in ("GetBatch", "CloseBatch"):
        refusals = [
            await world.refused(world.ours, f"BatchService/{rpc}", id=batch)
            for batch in (theirs, UNKNOWN)
        ]
        assert {one.reason for one in refusals} == {"BATCH_NOT_FOUND"}
    refusal = await world.refused(
        world.ours, "JobService/Push", queue="ours", payloads=["eA=="], options={"batchId": theirs}
    )
    assert refusal.reason == "BATCH_NOT_FOUND"
    refusal = await world.refused(world.ours, "BatchService/CreateBatch", name="of no queue")
    assert refusal.reason == "NOT_ALLOWED"
    callback = {"queue": "ours", "text": "done"}
    created = await world.ask(world.ours, "BatchService/CreateBatch", onComplete=callback)
    await world.ask(world.ours, "BatchService/GetBatch", id=created.batch.id)
    await world.ask(world.ours, "BatchService/CloseBatch", id=created.batch.id)


async def test_a_schedule_belongs_to_its_queue(world: World) -> None:
    settings = {"queue": "theirs", "every": "3600s", "job": {"text": "secret"}}
    await world.ask(
        world.root, "ScheduleService/CreateSchedule", schedule="theirs", settings=settings
    )
    for verb in ("Get", "Pause", "Resume", "Trigger", "Delete"):
        refusals = [
            await world.refused(world.ours, f"ScheduleService/{verb}Schedule", schedule=name)
            for name in ("theirs", "nobodys")
        ]
        assert {one.reason for one in refusals} == {"SCHEDULE_NOT_FOUND"}, verb
    own = settings | {"queue": "ours"}
    refusal = await world.refused(
        world.ours,
        "ScheduleService/CreateSchedule",
        schedule="theirs",
        settings=own,
        upsert=True,
    )
    assert refusal.reason == "NOT_ALLOWED"
    await world.ask(world.ours, "ScheduleService/CreateSchedule", schedule="ours", settings=own)
    seen = await world.ask(world.looks, "ScheduleService/GetSchedule", schedule="ours")
    assert seen.schedule.settings.queue == "ours"
    assert "secret" not in str(seen)
    refusal = await world.refused(world.looks, "ScheduleService/PauseSchedule", schedule="ours")
    assert refusal.reason == "NOT_ALLOWED"
    moved = {"queue": "theirs"}
    refusal = await world.refused(
        world.ours,
        "ScheduleService/UpdateSchedule",
        schedule="ours",
        settings=moved,
        updateMask="queue",
    )
    assert refusal.reason == "NOT_ALLOWED"


async def test_a_flow_shows_what_may_be_read(world: World) -> None:
    flow = [
        {"queue": "ours", "job": {"text": "x"}, "children": [1]},
        {"queue": "theirs", "job": {"text": "secret"}},
    ]
    pushed = await world.ask(world.root, "FlowService/PushFlow", jobs=flow)
    refusal = await world.refused(world.ours, "FlowService/PushFlow", jobs=flow)
    assert refusal.reason == "NOT_ALLOWED"
    found = await world.ask(world.ours, "FlowService/GetFlow", id=pushed.ids[0])
    assert [node.queue for node in found.jobs] == ["ours"]
    assert found.is_cut


async def test_operations_name_the_caller(world: World) -> None:
    """In the list of operations, and in what they leave behind."""
    await world.push("ours")
    await world.ask(world.ours, "QueueService/PauseQueue", queue="ours", reason="a test")
    listed = await world.ask(world.ours, "AdminService/ListOperations", queue="ours")
    assert listed.operations[0].principal == "key:ours"
    queue = await world.ask(world.root, "QueueService/GetQueue", queue="ours")
    assert queue.queue.paused_by == "key:ours"
    await world.ask(world.ours, "QueueService/ResumeQueue", queue="ours")
