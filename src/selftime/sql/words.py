"""The words of a query: which names it holds, and whether it does anything but ask.

Polars has no hook that tells which relations a query reads, nor one that forbids it to open files.
Both are told from its words, and what is not sure is taken for the worse.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, Literal, NamedTuple, TypeAlias

from selftime.errors import UsageError

Kind: TypeAlias = Literal["name", "text", "sign"]

ASKING: Final = frozenset({"select", "with", "from", "values", "explain", "show", "("})
"""What a statement that changes nothing begins with."""
READERS: Final = ("read_", "scan_")
"""How functions that open a file are called."""
_QUOTES: Final = frozenset("'\"`")
_SHOWN: Final = 40
"""Characters of a wrong query that are told."""


class Word(NamedTuple):
    """One word of a query: a name as written without its quotes, a text, or a sign."""

    kind: Kind
    text: str


def names_in(query: str) -> frozenset[str]:
    """Every name in the query, of relations and of columns, as it is written there."""
    return frozenset(word.text for word in _words(query) if word.kind == "name")


def only_asking(query: str) -> None:
    """Raise `UsageError` if the query would do anything but ask the tables that it is given."""
    words = list(_words(query))
    first = next((word.text.lower() for word in words if word.text != "("), "")
    if first not in ASKING:
        begin = " ".join(query.split())[:_SHOWN]
        raise UsageError(f"`{begin}` is no query; write one that begins with `select` or `with`")
    if "\\" in query or "$" in query:  # some dialects end a text elsewhere then
        opening = query.split()
    else:
        pairs = pairwise(words)
        opening = [one.text for one, after in pairs if one.kind == "name" and after.text == "("]
    for name in opening:
        if any(reader in name.lower() for reader in READERS):
            raise UsageError(
                f"`{name[:_SHOWN]}` opens a file, and a query asks the trace's tables and views "
                "alone; read the file in Python and join it with what `Trace.sql` answers"
            )


def _words(query: str) -> Iterator[Word]:
    """The words in order, without comments."""
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
