"""Splits SQL queries into tokens, to find names in them and to reject those that change data.

Polars has no hook for the relations that a query reads, nor one that forbids it to open files. Both
are derived from the query's words; in doubt, a query is rejected.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, Literal, NamedTuple, TypeAlias

from selftime.errors import UsageError

SqlTokenKind: TypeAlias = Literal["name", "text", "sign"]

FIRST_WORDS_OF_READING_STATEMENTS: Final = frozenset(
    {"select", "with", "from", "values", "explain", "show", "("}
)
"""First words, in lower case, of SQL statements that read data and change nothing."""
FILE_READER_FUNCTION_PREFIXES: Final = ("read_", "scan_")
"""Prefixes of the names of SQL functions that open a file; queries may not call these functions."""
_SQL_QUOTE_CHARACTERS: Final = frozenset("'\"`")
_MAX_SHOWN_QUERY_CHARACTERS: Final = 40
"""Largest number of characters of a rejected query that the error message quotes."""


class SqlToken(NamedTuple):
    """A token of an SQL query: an unquoted name, a string literal, or another character."""

    kind: SqlTokenKind
    text: str
    start: int
    """Offset of the token in the query."""
    end: int
    """Offset of the character after the token."""


def names_written_in_query(query: str) -> frozenset[str]:
    """Returns every name in an SQL query, of tables, columns and functions."""
    return frozenset(word.text for word in tokens_of_query(query) if word.kind == "name")


def require_read_only_query(query: str) -> None:
    """Raises a `UsageError` for an SQL query that does anything but read tables and views."""
    words = list(tokens_of_query(query))
    first = next((word.text.lower() for word in words if word.text != "("), "")
    if first not in FIRST_WORDS_OF_READING_STATEMENTS:
        begin = " ".join(query.split())[:_MAX_SHOWN_QUERY_CHARACTERS]
        raise UsageError(f"`{begin}` is not a query; write one that begins with `select` or `with`")
    if "\\" in query or "$" in query:  # some dialects end a text elsewhere in this case
        opening = query.split()
    else:
        pairs = pairwise(words)
        opening = [one.text for one, after in pairs if one.kind == "name" and after.text == "("]
    for name in opening:
        if any(reader in name.lower() for reader in FILE_READER_FUNCTION_PREFIXES):
            shown = name[:_MAX_SHOWN_QUERY_CHARACTERS]
            raise UsageError(
                f"`{shown}` opens a file, but a query can read tables and views only; "
                "read the file in Python and join it with the result of `Trace.sql`"
            )


def tokens_of_query(query: str) -> Iterator[SqlToken]:
    """Yields the tokens of an SQL query in order, without comments."""
    at = 0
    while at < len(query):
        sign = query[at]
        if query.startswith("--", at):
            at = min(
                _index_after_next_text(query, "\n", at), _index_after_next_text(query, "\r", at)
            )
        elif query.startswith("/*", at):
            at = _index_after_next_text(query, "*/", at + 2)
        elif sign in _SQL_QUOTE_CHARACTERS:
            until = _index_after_next_text(query, sign, at + 1)
            kind: SqlTokenKind = "text" if sign == "'" else "name"
            yield SqlToken(kind, query[at + 1 : until - 1], at, until)
            at = until
        elif _is_name_character(sign):
            until = at
            while until < len(query) and _is_name_character(query[until]):
                until += 1
            yield SqlToken("name", query[at:until], at, until)
            at = until
        else:
            if not sign.isspace():
                yield SqlToken("sign", sign, at, at + 1)
            at += 1


def _index_after_next_text(query: str, text: str, start: int) -> int:
    found = query.find(text, start)
    return len(query) if found < 0 else found + len(text)


def _is_name_character(character: str) -> bool:
    return character == "_" or character.isalnum()
