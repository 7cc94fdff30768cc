"""Bounds the values of a JSON text before it is parsed.

Python parses in one step, during which no other thread runs: texts of many small values take 50 ns
and 60 bytes for each, so 17 MiB could stop the loop for half a second. The tokens of texts that
could have too many are counted first, one by one, without those inside of strings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from jobline_server.rpc.validate import fields

# More than the largest call has: 100,000 values of header columns beside 10,000 payloads.
VALUES_MAX = 200_000
# A value has a comma or a bracket before it, and may be a string, or have a name that is one.
TOKENS_MAX = 3 * VALUES_MAX
# Possessive, and a string that does not end is one token up to the end of the text, so that no text
# takes longer than its length.
TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"\s*+(:?)|\\?\Z)|[\[\]{},]', re.DOTALL)


def check_values(text: str, names: Mapping[str, str]) -> None:
    """Refuses a text of more values than any request has, with the field that it was in.
    `names`: the fields' names in the protocol, by those in JSON.
    """
    if sum(map(text.count, ",[{")) <= VALUES_MAX:
        return
    count = depth = 0
    name = ""
    for token in TOKEN.finditer(text):
        first = text[token.start()]
        if first == '"':
            if depth == 1 and token[1]:
                name = token[0].partition('"')[2].partition('"')[0]
        elif first in "[{":
            depth += 1
        elif first in "]}":
            depth -= 1
        # Strings count too, because a text that is no JSON may have nothing else.
        count += first not in "]}"
        if count > TOKENS_MAX:
            raise fields.too_large(
                names.get(name, ""),
                f"a request in JSON holds up to {VALUES_MAX:,} values; use application/proto",
            )
