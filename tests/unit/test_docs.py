"""The documents keep their word: links resolve, make targets exist, promises are promised.

This reads Markdown, the Makefile and the text of the code. It runs nothing that a document shows;
`make readme` does that, and what the guarantees name is held by `test_guarantees.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUARANTEES = ROOT / "docs" / "guarantees.md"

FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)|!\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")
MAKE = re.compile(r"(?:^|[\s;&(])make((?:[ \t]+[a-z][a-z-]*(?![\w=-]))+)", re.MULTILINE)
TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)


def documents() -> list[Path]:
    """README, the other documents at the root, docs/, and the READMEs of clients and chart."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    found += (ROOT / "deploy").rglob("README.md")
    return sorted([*found, *(ROOT / "clients").glob("*/README.md")])


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def anchors(path: Path) -> set[str]:
    """The anchors that a reader's browser finds in a document: each heading, as GitHub slugs it."""
    slugs: set[str] = set()
    for heading in HEADING.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        count = sum(known == slug or known.startswith(f"{slug}-") for known in slugs)
        slugs.add(slug if slug not in slugs else f"{slug}-{count}")
    return slugs


def broken_links(path: Path) -> list[str]:
    """The relative links of a document that lead nowhere."""
    broken = []
    for inline, image in LINK.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
        link = inline or image
        if re.match(r"[a-z][a-z+.-]*:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        if not target.exists() or ROOT not in (target, *target.parents):
            broken.append(f"{named(path)}: {link}: no such file")
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            broken.append(f"{named(path)}: {link}: no such heading")
    return broken


def shown_targets(path: Path) -> set[str]:
    """The make targets that a document's code names."""
    text = path.read_text(encoding="utf-8")
    blocks = [match.group() for match in FENCE.finditer(text)]
    code = "\n".join([*blocks, *SPAN.findall(FENCE.sub("", text))])
    return {word for words in MAKE.findall(code) for word in words.split()}


def makefile_targets() -> set[str]:
    return set(TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))


def promises_in(text: str) -> set[str]:
    """The number of every promise that a text names, as in G1."""
    return set(re.findall(r"(?<![\w-])G[1-9][0-9]?\b", text))


@pytest.mark.parametrize("document", documents(), ids=named)
def test_relative_links_resolve(document):
    """A link leads to a file of the repository, and to a heading that it has."""
    assert not broken_links(document)


@pytest.mark.parametrize("document", documents(), ids=named)
def test_named_make_targets_exist(document):
    """Nobody is told to run a target that make does not know."""
    assert shown_targets(document) <= makefile_targets()


def test_make_help_lists_every_target():
    """A target without a line of help would never be found."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    helped = set(re.findall(r"^([a-z][a-z-]*):.*## \S", makefile, re.MULTILINE))
    assert makefile_targets() == helped


def test_promises_named_in_code_are_promised():
    """A promise that code or a test refers to stands in the guide."""
    promised = promises_in(GUARANTEES.read_text(encoding="utf-8"))
    for folder in ("service", "clients/python", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            if path != Path(__file__) and "_pb2" not in path.name:
                assert promises_in(path.read_text(encoding="utf-8")) <= promised, named(path)


def test_broken_link_is_found(tmp_path, monkeypatch):
    """A missing file and a missing heading are told apart; what leads out of the tree is broken."""
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# A b\n[ok](#a-b) [no](gone.md) [bad](page.md#c) [web](https://x) [up](../)\n")
    assert [line.rsplit(": ", 1)[1] for line in broken_links(page)] == [
        "no such file",
        "no such heading",
        "no such file",
    ]


def test_shown_targets_are_read_from_code_only(tmp_path):
    """Prose may make sense of things without naming a target."""
    page = tmp_path / "page.md"
    page.write_text("We make sense. `make demo DIR=x` and:\n```sh\nmake setup && make ci\n```\n")
    assert shown_targets(page) == {"demo", "setup", "ci"}


def test_go_of_the_testing_page_is_a_test_that_runs():
    """What the page shows of the Go kit stands in its example, which `make go-test` runs."""
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    example = (ROOT / "clients/go/joblinetest/example_test.go").read_text(encoding="utf-8")
    blocks = re.findall(r"^```go\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert blocks
    assert [block for block in blocks if block not in example] == []
