"""Write the parts of docs/ that are made from the code: `python scripts/docs_tables.py [--check]`.

A part stands between `<!-- made from …: NAME -->` and `<!-- end of NAME -->`. What it says lives in
the code and nowhere else; `--check` fails when a document says something different.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import fill

from google.protobuf.descriptor import Descriptor

from jobline.cli.exit_codes import MEANINGS
from jobline.v1 import errors_pb2, event_pb2, job_pb2, job_service_pb2
from jobline_server.cli.described import choices, in_order, shown_default
from jobline_server.config import Settings
from jobline_server.engine.commands import RefusalKind
from jobline_server.engine.states import as_mermaid
from jobline_server.rpc.errors import CODES
from jobline_server.rpc.validate.list_limits import LIST_LIMITS, NOT_SERVED
from jobline_server.storage.recovery_cases import CASES

ROOT = Path(__file__).parents[1]
PROTOS = ROOT / "proto" / "jobline" / "v1"
PART = re.compile(
    r"(?P<begin><!-- made from [^\n]+?: (?P<name>[a-z-]+) -->\n).*?"
    r"(?P<end><!-- end of (?P=name) -->)",
    re.DOTALL,
)
LINE_MAX = 100
# A field, or a value of an enum, with the comment above it.
COMMENTED = re.compile(
    r"(?P<comment>(?:^ *//[^\n]*\n)+) *(?:repeated |optional )?(?P<declared>[^\n;{]+?) = \d+;",
    re.MULTILINE,
)


def settings_table() -> str:
    """Every setting: flag, variable, default, meaning."""
    rows = ["| flag | variable | default | |", "|---|---|---|---|"]
    for name, info in in_order(Settings.model_fields).items():
        words = (
            f" One of {', '.join(f'`{word}`' for word in choices(info))}." if choices(info) else ""
        )
        rows.append(
            f"| `--{name.replace('_', '-')}` | `JOBLINE_{name.upper()}` "
            f"| {cell(shown_default(info))} | {cell(str(info.description))}{words} |"
        )
    return "\n".join(rows)


def exit_codes() -> str:
    """Exit codes of the command line."""
    rows = [f"| {int(code)} | {cell(meaning)} |" for code, meaning in MEANINGS.items()]
    return "\n".join(["| code | meaning |", "|--:|---|", *rows])


def error_table() -> str:
    """Reasons, their statuses, and what they mean."""
    said = comments_of("errors.proto", "ERROR_REASON_")
    rows = ["| reason | status | nothing was stored | |", "|---|---|---|---|"]
    for name in errors_pb2.ErrorReason.keys()[1:]:
        reason = name.removeprefix("ERROR_REASON_")
        status, _, meaning = said[reason].partition(": ")
        kind = getattr(RefusalKind, reason, None)
        if kind is not None and CODES[kind].name != status:
            raise SystemExit(f"{reason}: errors.proto says {status}, rpc says {CODES[kind].name}")
        definite = "" if status in {"UNAVAILABLE", "INTERNAL", "DATA_LOSS"} else "yes"
        rows.append(f"| `{reason}` | `{status}` | {definite} | {cell(meaning)} |")
    return "\n".join(rows)


def list_limits() -> str:
    """Lists and maps of requests that are served, by message."""
    rows = ["| message | list or map: entries at most |", "|---|---|"]
    by_message: dict[str, list[str]] = {}
    for name, most in LIST_LIMITS.items():
        message, _, field = name.rpartition(".")
        if most != NOT_SERVED:
            by_message.setdefault(message, []).append(f"`{field}` {most:,}")
    for message, fields in by_message.items():
        rows.append(f"| `{message.rpartition('.')[2]}` | {', '.join(fields)} |")
    return "\n".join(rows)


def options_carried() -> str:
    """Fields of a job that are served."""
    return "\n".join(
        [
            "| field | |",
            "|---|---|",
            *(f"| `{name}` | {cell(text)} |" for name, text in job_fields(served=True)),
        ]
    )


def options_to_come() -> str:
    """Fields of a job that are part of the protocol and answered with UNIMPLEMENTED."""
    names = ", ".join(f"`{name}`" for name, _ in job_fields(served=False))
    return fill(f"{names or 'None at present'}.", LINE_MAX)


def job_fields(*, served: bool) -> Iterator[tuple[str, str]]:
    """Name and comment of the options of a job, and of what else a pushed job may have."""
    job, push = "job.proto", "job_service.proto"
    for message, file in (
        (job_pb2.JobOptions.DESCRIPTOR, job),
        (job_pb2.Backoff.DESCRIPTOR, job),
        (job_pb2.Retention.DESCRIPTOR, job),
        (job_pb2.NewJob.DESCRIPTOR, job),
        (job_service_pb2.PushRequest.DESCRIPTOR, push),
    ):
        prefix = "" if message.name == "JobOptions" else f"{message.name}."
        for name, text in fields_of(message, file):
            if ("ot served yet" not in text) == served and name not in {"options", "jobs"}:
                yield prefix + name, text


def fields_of(message: Descriptor, file: str) -> Iterator[tuple[str, str]]:
    """Fields of a message with the comments that the proto has on them."""
    text = (PROTOS / file).read_text(encoding="utf-8")
    body = re.search(rf"^message {message.name} {{\n(.*?)^}}", text, re.MULTILINE | re.DOTALL)
    if body is None:
        raise SystemExit(f"{file} has no message {message.name}")
    for match in COMMENTED.finditer(body[1]):
        yield match["declared"].split()[-1], comment_text(match["comment"])


def comments_of(file: str, prefix: str) -> dict[str, str]:
    """Comments of an enum's values by their bare names."""
    text = (PROTOS / file).read_text(encoding="utf-8")
    return {
        match["declared"].strip().removeprefix(prefix): comment_text(match["comment"])
        for match in COMMENTED.finditer(text)
    }


def comment_text(comment: str) -> str:
    """A comment without its marks, as one line; which word comes first is for the proto alone."""
    joined = " ".join(line.strip().removeprefix("//").strip() for line in comment.splitlines())
    return re.sub(r"^(Optional|Required|Output only)\. ", "", joined)


def events() -> str:
    """Kinds of events, and when each is told."""
    said = comments_of("event.proto", "EVENT_KIND_")
    rows = [
        f"| `{name.removeprefix('EVENT_KIND_')}` | {cell(said[name.removeprefix('EVENT_KIND_')])} |"
        for name in event_pb2.EventKind.keys()[1:]
    ]
    return "\n".join(["| kind | |", "|---|---|", *rows])


def states() -> str:
    """The picture of legal moves."""
    return f"```mermaid\n{as_mermaid()}```"


def recovery_table() -> str:
    """What a store may find when it opens, and what is decided."""
    rows = [
        f"| {case.number} | {case.name} | {cell(case.condition)} | {case.decision.value} "
        f"| {cell(case.because)} |"
        for case in CASES
    ]
    return "\n".join(["| # | case | found | decision | because |", "|--:|---|---|---|---|", *rows])


def cell(text: str) -> str:
    """Text that fits a cell."""
    return text.replace("|", "\\|").replace("\n", " ")


PARTS: dict[str, Callable[[], str]] = {
    "settings": settings_table,
    "exit-codes": exit_codes,
    "errors": error_table,
    "events": events,
    "options": options_carried,
    "options-to-come": options_to_come,
    "list-limits": list_limits,
    "states": states,
    "recovery": recovery_table,
}


def renewed(text: str) -> str:
    """A document with its parts as the code has them."""

    def part(match: re.Match[str]) -> str:
        return f"{match['begin']}{PARTS[match['name']]()}\n{match['end']}"

    return PART.sub(part, text)


def main(*, check: bool) -> int:
    """Renews all documents, or says which are not as they should be."""
    stale = []
    for path in sorted((ROOT / "docs").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if (made := renewed(text)) != text:
            stale.append(path.name)
            if not check:
                path.write_text(made, encoding="utf-8")
    if check and stale:
        print(f"not as the code says: {', '.join(stale)}; run `make docs`", file=sys.stderr)
        return 1
    print(f"docs: {'renewed ' + ', '.join(stale) if stale else 'as the code says'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
