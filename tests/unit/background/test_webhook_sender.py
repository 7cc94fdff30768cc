"""A message goes to the address that was checked, within bounds of time and bytes, whatever the
receiver and the names of hosts do.
"""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobline_server.background import webhook_sender
from jobline_server.background.webhook_outcomes import Answer
from jobline_server.background.webhook_sender import Sender
from tests.e2e.webhook_receiver import Receiver, receiving, status

NOW_MS = 1_800_000_000_000
IN_A_MINUTE = "Fri, 15 Jan 2027 08:01:00 GMT"
NO_ANSWERS = {
    "none": b"",
    "garbage": b"no http\r\n\r\n",
    "long head": b"HTTP/1.1 200 X\r\nx: " + b"y" * 1_000_000,
}


class Names:
    """Resolves every name to the next of these addresses, the last one again."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = [*addresses]
        self.asked: list[str] = []

    async def resolve(self, host: str, _port: int) -> list[str]:
        self.asked.append(host)
        if not self.addresses:
            raise OSError("no such host")
        return [self.addresses.pop(0) if len(self.addresses) > 1 else self.addresses[0]]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as one:
        yield one


async def send(sender: Sender, url: str) -> Answer:
    try:
        return await sender.send(url, {"webhook-id": "msg"}, b"{}", NOW_MS)
    finally:
        await sender.close()


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        (status(204), Answer(204)),
        (status(302, "location: http://127.0.0.1:1/"), Answer(302)),
        (status(429, "retry-after: 90"), Answer(429, retry_after_ms=90_000)),
        (status(503, f"retry-after: {IN_A_MINUTE}"), Answer(503, retry_after_ms=60_000)),
        (status(503, "retry-after: Fri, 15 Jan 2021 08:01:00 GMT"), Answer(503, retry_after_ms=0)),
        (status(503, "retry-after: soon"), Answer(503)),
        (status(200) + b"x" * 10_000_000, Answer(200)),
        (b"HTTP/1.1 200 X\r\ncontent-length: 9999999\r\n\r\n", Answer(200)),
    ],
    ids=["delivered", "redirect", "seconds", "date", "past", "nonsense", "long", "never ends"],
)  # fmt: skip
async def test_answers(receiver: Receiver, raw: bytes, answer: Answer) -> None:
    """The body is not read, and a redirect not followed."""
    receiver.answers = [raw]
    assert await send(Sender(allow_private=True), receiver.url) == answer
    assert len(receiver.received) == 1


@pytest.mark.parametrize("raw", NO_ANSWERS.values(), ids=NO_ANSWERS)
async def test_what_is_no_answer_is_an_error(receiver: Receiver, raw: bytes) -> None:
    receiver.answers = [raw]
    answer = await send(Sender(allow_private=True), receiver.url)
    assert answer.error
    assert answer.is_down


async def test_name_that_changes_is_asked_once(receiver: Receiver) -> None:
    """The connection goes to the address that was checked, whatever the name means by then."""
    names = Names("127.0.0.1", "10.9.9.9")
    sender = Sender(allow_private=True, resolver=names.resolve)
    answer = await send(sender, f"http://hook.example:{receiver.port}/x")
    assert answer == Answer(200)
    assert names.asked == ["hook.example"]
    [received] = receiver.received
    assert received.headers["host"] == f"hook.example:{receiver.port}"


async def test_each_message_is_checked_anew(receiver: Receiver) -> None:
    """A name that led to a public address leads into the network later."""
    names = Names("127.0.0.1", "169.254.169.254")
    sender = Sender(allow_private=True, resolver=names.resolve)
    url = f"http://hook.example:{receiver.port}/x"
    assert (await sender.send(url, {}, b"", NOW_MS)).is_delivered
    answer = await send(sender, url)
    assert answer.is_forbidden
    assert "169.254.169.254" not in answer.error
    assert len(receiver.received) == 1


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"]
)
async def test_no_way_of_writing_it_leads_to_this_host(receiver: Receiver, host: str) -> None:
    answer = await send(Sender(allow_private=False), f"http://{host}:{receiver.port}/")
    assert answer.is_forbidden or answer.error
    assert receiver.received == []


async def test_internal_names_are_not_even_resolved() -> None:
    names = Names("93.184.216.34")
    answer = await send(Sender(allow_private=True, resolver=names.resolve), "http://x.internal/")
    assert answer.is_forbidden
    assert names.asked == []


async def test_unknown_host_is_down() -> None:
    answer = await send(Sender(allow_private=True, resolver=Names().resolve), "http://x.example/")
    assert (answer.error, answer.is_down) == ("OSError: no such host", True)


async def test_all_of_a_try_is_bounded_in_time(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_sender, "TRY_SECONDS", 0.3)
    receiver.hold.clear()
    answer = await send(Sender(allow_private=True), receiver.url)
    assert "no answer within" in answer.error

    async def never(_host: str, _port: int) -> list[str]:
        await asyncio.Event().wait()
        raise AssertionError

    answer = await send(Sender(allow_private=True, resolver=never), receiver.url)
    assert "no answer within" in answer.error


async def test_request_is_whole(receiver: Receiver) -> None:
    """Nothing adds the headers that a client of httpx adds, but those of the message."""
    names = Names("127.0.0.1")
    sender = Sender(allow_private=True, user_agent="jobline/1", resolver=names.resolve)
    url = f"http://Hook.example:{receiver.port}/x?y=%20z"
    body = b'{"a": 1}' * 1_000
    answer = await sender.send(url, {"webhook-id": "m", "content-type": "a/b"}, body, NOW_MS)
    await sender.close()
    assert answer.is_delivered
    [received] = receiver.received
    assert (received.path, received.body) == ("/x?y=%20z", body)
    assert received.headers == {
        "host": f"hook.example:{receiver.port}",
        "webhook-id": "m",
        "content-type": "a/b",
        "content-length": "8000",
        "user-agent": "jobline/1",
        "accept": "*/*",
        "connection": "close",
    }


async def test_cookies_are_forgotten(receiver: Receiver) -> None:
    """Receivers are strangers to each other, and as many as there are URLs."""
    sender = Sender(allow_private=True)
    receiver.answers = [status(200, *[f"set-cookie: a{n}=b" for n in range(100)])]
    for _ in range(2):
        assert (await sender.send(receiver.url, {}, b"", NOW_MS)).is_delivered
    await sender.close()
    assert [one.headers.get("cookie") for one in receiver.received] == [None, None]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key, and the certificate of `hook.example` that it signed itself."""
    if not shutil.which("openssl"):
        pytest.skip("needs openssl")
    path = tmp_path_factory.mktemp("tls") / "one.pem"
    made = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=x "
        f"-addext subjectAltName=DNS:hook.example -keyout {path}.key -out {path}"
    )
    subprocess.run(made.split(), check=True, capture_output=True)
    return path


@pytest.mark.parametrize(("host", "is_right"), [("hook.example", True), ("other.example", False)])
async def test_certificate_must_be_that_of_the_name(
    certificate: Path, host: str, is_right: bool
) -> None:
    """Though the connection goes to an address."""
    own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    own.load_cert_chain(certificate, f"{certificate}.key")
    trusting = ssl.create_default_context(cafile=certificate)
    async with receiving(context=own) as receiver:
        names = Names("127.0.0.1")
        sender = Sender(allow_private=True, resolver=names.resolve, context=trusting)
        answer = await send(sender, f"https://{host}:{receiver.port}/")
        assert answer.is_delivered == is_right
        assert len(receiver.received) == is_right
        if not is_right:
            assert "certificate" in answer.error
        strange = Sender(allow_private=True, resolver=names.resolve)
        assert not (await send(strange, f"https://hook.example:{receiver.port}/")).is_delivered


async def test_server_without_webhooks_does_not_import_httpx() -> None:
    code = "import sys, jobline_server.app; sys.exit('httpx' in sys.modules)"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
    assert await process.wait() == 0
