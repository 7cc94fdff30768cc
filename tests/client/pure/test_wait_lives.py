"""Random lives of a board of waits: what it holds adds up, and everybody is told once."""

from __future__ import annotations

import random

import pytest

from jobline._wait.wait_call import WaitCall
from jobline.errors import Unavailable
from tests.client.pure.wait_line import Line, Waiter, ended

JOBS = range(300)


class Life:
    """Jobs end, calls break, callers come and go."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.line = Line()
        self.over: set[int] = set()
        self.calls: list[WaitCall] = []
        self.waiters: list[Waiter] = []
        self.now = 0.0

    def step(self) -> None:
        self.now += self.draw.random() * 0.02
        chosen = self.draw.choices([self.come, self.leave, self.finish, self.part], [8, 2, 6, 1])
        chosen[0]()
        self.talk(0.3)

    def come(self) -> None:
        ids = {self.draw.choice(JOBS) for _ in range(self.draw.randint(1, 4))}
        self.waiters.append(Waiter(*ids))
        self.line.add(self.waiters[-1])

    def leave(self) -> None:
        if self.waiters:
            self.line.leave(self.waiters.pop(self.draw.randrange(len(self.waiters))))

    def finish(self) -> None:
        self.over.add(self.draw.choice(JOBS))

    def part(self) -> None:
        if self.calls:
            how = self.draw.choice([None, Unavailable("broken")])
            self.line.end(self.now, self.draw.choice(self.calls), how)

    def talk(self, share: float) -> None:
        """The server tells a share of what it knows."""
        self.calls += self.line.opened(self.now)
        for call in self.calls:
            for id_ in sorted(call.ids & self.over):
                if self.draw.random() < share:
                    self.line.take(self.now, call, ended(id_))
        self.calls = [call for call in self.calls if self.line.has(call)]

    def assert_sound(self) -> None:
        for call in self.calls:
            wanted = self.line._wanted.values()
            assert call.needed == sum(one.call is call for one in wanted)


@pytest.mark.parametrize("seed", range(30))
def test_everybody_is_told_once_whatever_happens(seed: int):
    """And nothing is left behind."""
    life = Life(seed)
    for _ in range(400):
        life.step()
        life.assert_sound()
    life.over.update(JOBS)
    life.now += 10.0
    life.talk(1.0)
    for call in life.calls:
        life.line.end(life.now, call)
    for waiter in life.waiters:
        assert sorted(waiter.ended) == sorted(waiter.ids)
    assert (life.line.calls, life.line.next_deadline(), life.line._wanted) == (0, None, {})
