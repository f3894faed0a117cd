"""Tokenise a query, to find the names in it and to reject anything but reading.

Polars has no hook for the relations that a query reads, nor one that forbids it to open files. Both
are derived from the query's words; in doubt, a query is rejected.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, Literal, NamedTuple, TypeAlias

from selftime.errors import UsageError

Kind: TypeAlias = Literal["name", "text", "sign"]

READING_WORDS: Final = frozenset({"select", "with", "from", "values", "explain", "show", "("})
"""First words of statements that only read."""
READERS: Final = ("read_", "scan_")
"""Prefixes of functions that open a file."""
_QUOTES: Final = frozenset("'\"`")
_SHOWN: Final = 40
"""The most characters of a wrong query that a message shows."""


class Word(NamedTuple):
    """A token of a query: a name without its quotes, a text, or a sign."""

    kind: Kind
    text: str


def names_in(query: str) -> frozenset[str]:
    """Returns every name in the query, of relations and columns, as written."""
    return frozenset(word.text for word in _words(query) if word.kind == "name")


def require_read_only(query: str) -> None:
    """Raise `UsageError` if the query does anything but read the given tables."""
    words = list(_words(query))
    first = next((word.text.lower() for word in words if word.text != "("), "")
    if first not in READING_WORDS:
        begin = " ".join(query.split())[:_SHOWN]
        raise UsageError(f"`{begin}` is not a query; write one that begins with `select` or `with`")
    if "\\" in query or "$" in query:  # some dialects end a text elsewhere in this case
        opening = query.split()
    else:
        pairs = pairwise(words)
        opening = [one.text for one, after in pairs if one.kind == "name" and after.text == "("]
    for name in opening:
        if any(reader in name.lower() for reader in READERS):
            raise UsageError(
                f"`{name[:_SHOWN]}` opens a file, but a query can read tables and views only; "
                "read the file in Python and join it with the result of `Trace.sql`"
            )


def _words(query: str) -> Iterator[Word]:
    """Yields the tokens in order, without comments."""
    at = 0
    while at < len(query):
        sign = query[at]
        if query.startswith("--", at):
            at = min(_after(query, "\n", at), _after(query, "\r", at))
        elif query.startswith("/*", at):
            at = _after(query, "*/", at + 2)
        elif sign in _QUOTES:
            until = _after(query, sign, at + 1)
            yield Word("text" if sign == "'" else "name", query[at + 1 : until - 1])
            at = until
        elif _is_of_name(sign):
            until = at
            while until < len(query) and _is_of_name(query[until]):
                until += 1
            yield Word("name", query[at:until])
            at = until
        else:
            if not sign.isspace():
                yield Word("sign", sign)
            at += 1


def _after(query: str, end: str, at: int) -> int:
    found = query.find(end, at)
    return len(query) if found < 0 else found + len(end)


def _is_of_name(sign: str) -> bool:
    return sign == "_" or sign.isalnum()
