"""Compiled schemas: which can be used, and how much memory they may take."""

from __future__ import annotations

import json

import pytest

from jobline_server.runtime.calls import compiled_schemas
from jobline_server.runtime.calls.compiled_schemas import CompiledSchemas


def test_schemas_are_compiled_once() -> None:
    schemas = CompiledSchemas()
    assert schemas.find('{"const":1}') is schemas.find('{"const":1}')
    assert schemas.find('{"const":1}').first_misfit(2) == "const"
    assert schemas.find('{"const":1}').first_misfit(1) is None


@pytest.mark.parametrize("text", ["", "{", '{"$ref":"https://a"}', '{"pattern":"("}'])
def test_what_cannot_be_used_checks_nothing(text: str) -> None:
    assert CompiledSchemas().find(text).validator is None


def test_the_least_recently_used_go_when_all_take_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may be a hundred times as large as its text."""
    texts = [json.dumps({"const": number}) for number in range(4)]
    schemas = CompiledSchemas()
    each = schemas.find(texts[0]).held_bytes
    monkeypatch.setattr(compiled_schemas, "COMPILED_BYTES_MAX", 3 * each)
    for index in (1, 2, 0, 3):
        schemas.find(texts[index])
    assert [text in schemas for text in texts] == [True, False, True, True]
    for text in texts:
        schemas.forget(text)
    assert (len(schemas), schemas.held_bytes) == (0, 0)


def test_patterns_count_as_what_they_may_take() -> None:
    """However they are spelled."""
    plain, patterns = '{"\\u0070attern":"a{3}b+"}', 1
    found = CompiledSchemas().find(plain)
    assert found.validator is not None
    assert found.held_bytes >= patterns * compiled_schemas.PATTERN_BYTES_MAX
