"""Every command at a server that asks for tokens and speaks TLS."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from typer.main import get_command

from jobline import Client, FlowJob
from jobline.cli.exit_codes import Exit
from tests.cli.conftest import APP
from tests.cli.guarded import Guarded, guarded_server, run

FLAGS = {"--server", "--token-file", "--tls", "--tls-ca", "--client-certificate", "--client-key"}
# Commands that talk to no server.
OFFLINE = {"serve", "dev", "auth new-key", "auth check", "inspect", "verify", "restore"}
URL = "http://hook.example/x"

# What a caller types, who it is, and how it ends if that is not 0. In braces: what is there.
COMMANDS: dict[str, tuple[str, str] | tuple[str, str, Exit]] = {
    "audit": ("", "read"),
    "backup": ("--no-wait", "admin"),
    "batch cancel": ("{batch} --yes", "read-manage"),
    "batch close": ("{batch}", "push"),
    "batch create": ("", "push"),
    "batch get": ("{batch}", "read"),
    "batch ls": ("", "read"),
    "bench": ("--jobs 1000 --singles 10", "read-push-work-manage"),
    "dead ls": ("queue:{queue}", "read"),
    "dead purge": ("queue:{queue} --yes", "read-manage"),
    "dead retry": ("queue:{queue}", "read-manage"),
    "dead stats": ("{queue}", "read"),
    "doctor": ("", "read-push-work-manage"),
    "flow get": ("{flow}", "read"),
    "generate": ("{queue}", "read", Exit.USAGE),  # no worker is connected: nothing to write
    "group get": ("{queue} acme", "read"),
    "group limit": ("{queue} acme --for 1s", "manage"),
    "group ls": ("{queue}", "read"),
    "group pause": ("{queue} acme", "manage"),
    "group resume": ("{queue} acme", "manage"),
    "group set": ("{queue} acme weight=2", "manage"),
    "introspect": ("{queue}", "read"),
    "job cancel": ("{job} --yes", "read-manage"),
    "job explain": ("{job}", "read"),
    "job follow": ("{done}", "read-read_payload"),
    "job forget-key": ("{queue} once", "manage"),
    "job get": ("{job}", "read"),
    "job logs": ("{job}", "read_payload"),
    "job ls": ("queue:{queue}", "read"),
    "job promote": ("{job}", "read-manage"),
    "job retry": ("{dead}", "read-manage"),
    "job rm": ("{job} --yes", "read-manage"),
    "job update": ("{job} --priority 3", "manage"),
    "job wait": ("{done}", "read"),
    "limiter empty": ("{limiter} --for 1s", "manage"),
    "limiter get": ("{limiter}", "read"),
    "limiter ls": ("", "read"),
    "limiter rm": ("{limiter} --yes", "manage"),
    "limiter set": ("{limiter} --concurrency 2", "manage"),
    "push": ("{queue} x", "push"),
    "queue clean": ("{queue} --yes", "read-manage"),
    "queue drain": ("{queue} --yes", "read-manage"),
    "queue get": ("{queue}", "read"),
    "queue history": ("{queue}", "read"),
    "queue limit": ("{queue} --for 1s", "manage"),
    "queue ls": ("", "read"),
    "queue pause": ("{queue}", "manage"),
    "queue resume": ("{queue}", "manage"),
    "queue rm": ("{queue} --force --yes", "read-manage"),
    "queue set": ("{queue} max_attempts=3", "read-manage"),
    "schedule create": ("new-{queue} {queue} x --every 1h", "read-push-work-manage"),
    "schedule get": ("{schedule}", "read"),
    "schedule ls": ("", "read"),
    "schedule pause": ("{schedule}", "manage"),
    "schedule preview": ("{schedule}", "read"),
    "schedule resume": ("{schedule}", "manage"),
    "schedule rm": ("{schedule} --yes", "manage"),
    "schedule trigger": ("{schedule}", "manage"),
    "schedule update": ("{schedule} --every 2h", "manage"),
    "stats": ("", "read"),
    "tail": ("{queue} --limit 1", "read"),
    "top": ("--limit 1 --interval 100ms", "read"),
    "undo": ("{operation}", "admin"),
    "webhook create": ("new-{queue} " + URL, "admin"),
    "webhook deliveries": ("{webhook}", "admin"),
    "webhook get": ("{webhook}", "admin"),
    "webhook ls": ("", "admin"),
    "webhook rm": ("{webhook} --yes", "admin"),
    "webhook rotate": ("{webhook}", "admin"),
    "webhook test": ("{webhook}", "admin"),
    "webhook update": ("{webhook} --disable", "admin"),
    "work": ("{queue} --exit-when-idle 0.1s -- true", "read-work"),
    "worker ls": ("", "read"),
}
# Lists of what a caller may see, which is nothing: no reason to refuse.
SHOWS_NOTHING = {"queue ls"}


@dataclass
class World:
    """What is on the server, each time anew."""

    there: dict[str, object] = field(default_factory=dict)

    def words(self, command: str) -> list[str]:
        """The words of a command and of what it needs."""
        return [*command.split(), *COMMANDS[command][0].format(**self.there).split()]


def make_world(client: Client, command: str) -> World:
    name = f"g-{uuid.uuid4().hex[:12]}"
    done = client.push(name, b"x")
    client.ack(*client.pull(name))
    dead = client.push(name, b"x")
    client.fail(client.pull(name)[0], "odd", then="dead")
    client.push(name, b"x", group="acme")
    job = client.push(name, b"x", delay=3_600, job_key="once")
    client.limiters.upsert(name, concurrency=1)
    client.schedules.create(name, name, every=3_600)
    if "{webhook}" in COMMANDS[command][0]:  # a server has 100 at most
        client.webhooks.create(name, URL)
    client.queues.update(f"{name}-other", max_attempts=4)
    operation = next(iter(client.admin.operations(queue=f"{name}-other")))
    return World(
        {
            "queue": name,
            "limiter": name,
            "schedule": name,
            "webhook": name,
            "job": job.id,
            "done": done.id,
            "dead": dead.id,
            "batch": client.batches.create(name).id,
            "flow": client.flows.push(FlowJob(name, children=[FlowJob(name)])).id,
            "operation": operation.id,
        }
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    with guarded_server(folder, backup_to=str(folder / "to")) as found:
        yield found


@pytest.fixture(scope="module")
def operator(server: Guarded) -> Iterator[Client]:
    with server.client() as client:
        yield client


def all_commands() -> dict[str, set[str]]:
    """All commands with their options."""

    def below(command: object, words: tuple[str, ...]) -> Iterator[tuple[str, set[str]]]:
        for name, one in getattr(command, "commands", {}).items():
            yield from below(one, (*words, name))
            if not hasattr(one, "commands"):
                yield " ".join((*words, name)), {word for p in one.params for word in p.opts}

    return dict(below(get_command(APP), ()))


def test_every_command_takes_the_flags() -> None:
    """And is in the table above."""
    found = all_commands()
    assert found.keys() - OFFLINE == COMMANDS.keys()
    for command, options in found.items():
        assert (options >= FLAGS) == (command not in OFFLINE), command


def pushing(client: Client, queue: object, ended: threading.Event) -> None:
    """Has something happen for `tail`, until it has ended."""
    while not ended.wait(0.01):
        client.push(str(queue), b"x")


@pytest.mark.parametrize("command", COMMANDS)
def test_it_works_with_the_right_role(server: Guarded, operator: Client, command: str) -> None:
    world = make_world(operator, command)
    words, caller, *code = COMMANDS[command]
    ended = threading.Event()
    pusher = threading.Thread(target=pushing, args=(operator, world.there["queue"], ended))
    if command == "tail":
        pusher.start()
    try:
        given = world.words(command)
        place = given.index("--") if "--" in given else len(given)
        done = run(*given[:place], *server.flags(caller), *given[place:])
    finally:
        ended.set()
        if command == "tail":
            pusher.join()
    assert done.code == (code[0] if code else Exit.OK), (words, done.err, done.out)


@pytest.mark.parametrize("command", COMMANDS)
def test_it_is_refused_clearly_without(server: Guarded, operator: Client, command: str) -> None:
    """No token, and one of a caller who may do everything, but not here."""
    given = make_world(operator, command).words(command)
    place = given.index("--") if "--" in given else len(given)
    nobody = run(*given[:place], *server.flags(), *given[place:])
    said = nobody.out + nobody.err
    assert nobody.code == (Exit.FAILED if command == "doctor" else Exit.REFUSED), said
    assert "this server asks who calls" in said
    assert "Give a token: --token-file FILE, or JOBLINE_TOKEN." in said
    stranger = run(*given[:place], *server.flags("stranger"), *given[place:])
    said = stranger.out + stranger.err
    if command in SHOWS_NOTHING:
        assert stranger.code == Exit.OK
        assert str(given[-1]) not in stranger.out
        return
    assert stranger.code in {Exit.REFUSED, Exit.NOT_FOUND, Exit.FAILED}, said
    assert re.search("has no role|no such|there is no|does not exist|skipped", said), said
    for secret in (server.token_file("stranger").read_text().strip(), "Traceback"):
        assert secret not in said
