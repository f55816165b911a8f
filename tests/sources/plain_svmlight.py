"""svmlight text in plain Python: what the compiled reader means."""

import math
import re

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
DIGITS = re.compile(rb"\d+")
QUERY = re.compile(rb"qid:(\d+)")


class RefusedError(Exception):
    pass


def finite(text):
    value = float(text)
    if not math.isfinite(value):
        raise RefusedError
    return value


def plain_rows(text):
    """[(label, query or None, {index: value})], or RefusedError."""
    rows = []
    for line in text.split(b"\n"):
        words = re.split(rb"[ \t\r]+", line.split(b"#")[0].strip(b" \t\r"))
        if words == [b""]:
            continue
        if not NUMBER.fullmatch(words[0]):
            raise RefusedError
        label, query, entries = finite(words[0]), None, {}
        for k, word in enumerate(words[1:]):
            asked = QUERY.fullmatch(word)
            if asked and k == 0:
                if len(asked[1]) > 18:
                    raise RefusedError
                query = int(asked[1])
                continue
            index, colon, value = word.partition(b":")
            if not (colon and DIGITS.fullmatch(index) and NUMBER.fullmatch(value)):
                raise RefusedError
            if int(index) > 2**31 - 2 or int(index) in entries:
                raise RefusedError
            entries[int(index)] = finite(value)
        rows.append((label, query, entries))
    queries = [query is not None for _, query, _ in rows]
    if any(queries) and not all(queries):
        raise RefusedError
    return rows
