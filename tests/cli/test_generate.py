"""Typed wrappers from announced handlers: each language takes them, whatever workers say."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NotRequired, TypedDict

import pytest

from jobline import HandlerSummary, HandlerVariant, JobType
from jobline._schemas import schema_text
from jobline.cli.generation import WRITERS, generate
from jobline.cli.generation.shapes import program_of


class Kind(Enum):
    HTML = "html"
    TEXT = "text"


@dataclass
class Address:
    street: str
    number: int | None = None


class Mail(TypedDict):
    to: Address
    kind: Kind
    copies: NotRequired[list[Address]]
    size: tuple[int, float]
    flags: dict[str, bool]
    level: Literal[1, 2]


@dataclass
class Tree:
    value: int
    children: list[Tree]


ROOT = Path(__file__).parents[2]
HOSTILE = "a\"b'`\\\n*/ */\u2028${x}; import os"


def handler(
    queue: str,
    name: str,
    payload: Any = Any,
    result: Any = Any,
    *,
    any_name: bool = False,
    schemas: tuple[str, str] | None = None,
) -> HandlerSummary:
    """A handler as the server lists it."""
    payload_schema, result_schema = schemas or (schema_text(payload), schema_text(result))
    variant = HandlerVariant(
        version="1", payload_schema=payload_schema, result_schema=result_schema, workers=1
    )
    return HandlerSummary(
        queue=queue,
        name=name,
        any_name=any_name,
        workers=1,
        variants=(variant,),
        differs=("version",) if any_name else (),
    )


HANDLERS = [
    handler("mail", "send", Mail, str),
    handler("mail", "Send!", Tree, Tree),
    handler("mail", "", list[int], int | None),
    handler("mail", "", Any, Any, any_name=True),
    handler("1-class", "class", None, bool),
    handler(
        HOSTILE,
        HOSTILE,
        schemas=(
            json.dumps(
                {
                    "title": HOSTILE,
                    "type": "object",
                    "properties": {HOSTILE: {"const": HOSTILE}, "def": {}, "a-b": {"type": "null"}},
                    "required": [HOSTILE],
                }
            ),
            '{"enum":["' + "'" + '","*/",1,true,null]}',
        ),
    ),
]
STRANGE = [
    "no JSON",
    "[]",
    "true",
    '{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}',
    '{"$ref":"http://elsewhere/schema"}',
    '{"type":["string","null",7]}',
    '{"anyOf":[]}',
    '{"allOf":[{"type":"string"},{"minLength":1}]}',
    '{"type":"object","properties":{"x":3},"required":7}',
    '{"type":"array","prefixItems":[{"type":"string"}]}',
    '{"enum":[]}',
    '{"enum":[1.5]}',
    '{"items":' * 200 + "{}" + "}" * 200,
]


def write(folder: Path, name: str, language: str) -> Path:
    path = folder / name
    path.write_text(generate(language, HANDLERS), encoding="utf-8")
    return path


def imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def test_python_is_imported_and_pushes_to_the_right_place(tmp_path: Path) -> None:
    module = imported(write(tmp_path, "made_jobs.py", "python"))
    assert isinstance(module.mail_send, JobType)
    assert (module.mail_send.queue, module.mail_send.name) == ("mail", "send")
    assert module.mail_send.payload.__annotations__.keys() == Mail.__annotations__.keys()
    assert module.mail_send2.payload.__name__ == "Tree"
    hostile = [one for one in vars(module).values() if isinstance(one, JobType)][-1]
    assert (hostile.queue, hostile.name) == (HOSTILE, HOSTILE)


def test_python_keeps_its_builtins(tmp_path: Path) -> None:
    """A worker of a queue called "list" does not break the module of all others."""
    words = {"type": "object", "properties": {"words": {"type": "array", "items": {}}}}
    schemas = json.dumps(words), json.dumps({"type": "array", "items": {"type": "string"}})
    made = [handler(queue, "", schemas=schemas) for queue in ("str", "list", "class", "mail")]
    path = tmp_path / "made_builtins.py"
    path.write_text(generate("python", made), encoding="utf-8")
    module = imported(path)
    assert module.list_.result == list[str]
    assert (module.str_.queue, module.class_.queue, module.mail.queue) == ("str", "class", "mail")


def test_python_is_typed(tmp_path: Path) -> None:
    """A push of a wrong payload is found by the type checker."""
    made = write(tmp_path, "made_jobs.py", "python")
    user = tmp_path / "user.py"
    user.write_text(
        "from jobline import Client\n"
        "from made_jobs import mail, mail_send2\n"
        "def good(client: Client) -> None:\n"
        "    mail.push(client, [1])\n"
        "    mail_send2.push(client, {'value': 1, 'children': []})\n"
        "def bad(client: Client) -> None:\n"
        "    mail.push(client, ['one'])\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file="]
    found = subprocess.run(
        [*command, str(made), str(user)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    errors = [line for line in found.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 1, found.stdout
    assert errors[0].startswith("user.py:7")


@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
def test_go_is_read_by_its_own_tools(tmp_path: Path) -> None:
    write(tmp_path, "jobs.go", "go")
    (tmp_path / "go.mod").write_text("module example.com/jobs\n\ngo 1.20\n")
    for command in (["gofmt", "-e", "-l", "jobs.go"], ["go", "vet", "./..."]):
        tool = shutil.which(command[0])
        assert tool is not None
        ran = subprocess.run(
            [tool, *command[1:]], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr


@pytest.fixture
def typescript() -> Path:
    """The compiler among the packages of the TypeScript client (`make ts-test` installs them)."""
    compiler = ROOT / "clients" / "typescript" / "node_modules" / ".bin" / "tsc"
    if shutil.which("node") is not None and compiler.exists():
        return compiler
    why = "needs Node and the packages of clients/typescript, which `make ts-test` installs"
    if os.environ.get("CONNECT_CLIENT") == "required":
        pytest.fail(why)
    pytest.skip(why)


def test_typescript_is_compiled_by_its_own_compiler(tmp_path: Path, typescript: Path) -> None:
    made = write(tmp_path, "jobs.ts", "ts")
    use = tmp_path / "use.ts"
    use.write_text(
        'import { handlers, type Handlers } from "./jobs.js";\n'
        'const result: Handlers["mailSend"]["result"] = "sent";\n'
        'const queue: "mail" = handlers.mailSend.queue;\n'
        "export { queue, result };\n",
        encoding="utf-8",
    )
    how = ["--noEmit", "--strict", "--ignoreConfig", "--target", "es2022", "--module", "nodenext"]
    ran = subprocess.run([typescript, *how, made, use], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_typescript_has_types_and_places() -> None:
    made = generate("ts", HANDLERS[:1])
    assert "export interface MailSendPayload {" in made
    assert '  "copies"?: Array<Address>;' in made
    assert "  mailSend: { payload: MailSendPayload; result: string };" in made
    assert '  mailSend: { queue: "mail", name: "send" }' in made


def test_json_schema_keeps_what_was_announced() -> None:
    made = json.loads(generate("json-schema", HANDLERS))
    first = made["handlers"][0]
    assert (first["queue"], first["name"]) == ("mail", "send")
    schema = made["$defs"][first["payload"]["$ref"].removeprefix("#/$defs/")]
    assert schema["title"] == "Mail"
    assert schema["$id"] == "urn:jobline:mail:send:payload"
    assert made["handlers"][3] == {"queue": "mail", "any_name": True}


@pytest.mark.parametrize("language", WRITERS)
@pytest.mark.parametrize("schema", STRANGE)
def test_strange_schemas_are_anything(language: str, schema: str) -> None:
    assert generate(language, [handler("q", "n", schemas=(schema, schema))])


def test_references_that_double_are_anything_in_the_end() -> None:
    """A schema that is read to its end would take longer than anybody waits."""
    definitions = {str(n): {"anyOf": [{"$ref": f"#/$defs/{n + 1}"}] * 100} for n in range(50)}
    schema = json.dumps({"$ref": "#/$defs/0", "$defs": definitions})
    text = generate("python", [handler("mail", "send", schemas=(schema, '{"type":"integer"}'))])
    assert "JobType[Any, int]" in text


def test_names_that_a_language_has_already_are_not_taken_again() -> None:
    schema = '{"title":"Any","type":"object","properties":{"x":{}}}'
    listed = f'{{"type":"array","items":{schema}}}'
    made = [handler("q", "n", schemas=(listed, "")), handler("q", "n!", schemas=("", ""))]
    program = program_of([*made, handler("q-n", "payload")])
    assert [record.name for record in program.records] == ["Any2"]
    assert [work.ident for work in program.works] == ["QN", "QN2", "QNPayload2"]


def test_where_workers_differ_the_most_decide() -> None:
    (work,) = program_of([HANDLERS[3]]).works
    assert work.differs == ("version",)
    assert "workers differ in: version" in generate("python", [HANDLERS[3]])
    assert "Workers differ in: version" in generate("go", [HANDLERS[3]])
    nobody = HandlerSummary(queue="q", name="n", any_name=False, workers=0, variants=(), differs=())
    assert generate("python", [nobody])
