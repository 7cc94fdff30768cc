"""Jobs of a queue, moved by hand: what several models of lanes do alike."""

from __future__ import annotations

import pytest

from jobline_server.engine.job import Job
from jobline_server.engine.lane import Lane, LaneItem
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import JobOptions, JobState


class QueueJobs:
    """A queue, the jobs that are ready there, and those that are out. Draws are any numbers."""

    def __init__(self) -> None:
        self.queue = Queue("q", 1, 0)
        self.ready: list[Job] = []
        self.leased: list[Job] = []
        self.number = 0

    def add(self, options: JobOptions) -> Job:
        """Makes a new job, the last of those that are ready; the caller puts it into the queue."""
        self.number += 1
        job = Job(self.number, self.queue, options, b"", 0)
        job.order = self.number
        self.ready.append(job)
        return job

    def hand_out(self, job: LaneItem) -> None:
        """A job goes out, from the head of its lane."""
        assert isinstance(job, Job)
        lane = self.queue.lane_of(job)
        assert lane.head() is job
        lane.items.popleft()
        lane.ready -= 1
        job.state = JobState.ACTIVE
        self.queue.count_lane(lane, -1)
        self.ready.remove(job)
        self.leased.append(job)

    def back(self, draw: int) -> None:
        """One of those that are out comes back."""
        if self.leased:
            job = self.leased.pop(draw % len(self.leased))
            job.state = JobState.READY
            self.queue.put_back([job])
            self.ready.append(job)

    def cancel(self, draw: int) -> None:
        """One of those that are ready is cancelled."""
        if self.ready:
            job = self.ready.pop(draw % len(self.ready))
            job.state = JobState.CANCELLED
            self.queue.leave(job, 1)


def lanes_looked_at(monkeypatch: pytest.MonkeyPatch) -> list[Lane]:
    """Notes from now on each lane whose head is asked for."""
    looked: list[Lane] = []
    head = Lane.head

    def seen(lane: Lane) -> LaneItem | None:
        looked.append(lane)
        return head(lane)

    monkeypatch.setattr(Lane, "head", seen)
    return looked
