"""Finds the place in an SQL query that Polars' error message is about."""

from typing import Final, NamedTuple

from selftime.sql.query_tokens import SqlToken, tokens_of_query

_PLACE_IN_MESSAGE: Final = " at Line: "
"""Words before the line and the column, with which the parser ends its message."""
_PARSER_IN_MESSAGE: Final = "sql parser error: "
"""Words before what the parser says."""
_END_OF_QUERY_IN_MESSAGE: Final = "found: EOF"
"""Words of the parser about a query that ends too early."""
_QUOTES_IN_MESSAGES: Final = "'\"`"


class QueryPlace(NamedTuple):
    """A part of a query: line and column from 1, and the offsets of its characters."""

    line: int
    column: int
    start: int
    end: int


def place_of_error(query: str, message: str) -> QueryPlace | None:
    """Returns the part of the query that an error message names; None if it names none.

    >>> place_of_error("select nome from slices", 'unable to find column "nome"; valid ...')
    QueryPlace(line=1, column=8, start=7, end=11)
    """
    tokens = list(tokens_of_query(query))
    told = _place_that_parser_tells(query, message)
    if told is not None:
        token = next((one for one in tokens if one.start <= told < one.end), None)
        return _place(query, told, told + 1 if token is None else token.end)
    if _END_OF_QUERY_IN_MESSAGE in message:
        end = len(query.rstrip())
        return _place(query, end, end)
    for name in _quoted_names(message):
        token = _first_token(tokens, name)
        if token is not None:
            return _place(query, token.start, token.end)
    return None


def with_place(message: str, place: QueryPlace | None) -> str:
    """Returns a message with the place in the words of all messages, if it is known.

    >>> with_place("found: BY at Line: 1, Column: 3", QueryPlace(1, 3, 2, 4))
    'found: BY (line 1, column 3)'
    """
    message = message.partition(_PLACE_IN_MESSAGE)[0].replace(_PARSER_IN_MESSAGE, "")
    return message if place is None else f"{message} (line {place.line}, column {place.column})"


def _place_that_parser_tells(query: str, message: str) -> int | None:
    """Returns the offset of the line and column with which a message ends; None if it does not."""
    line_text, comma, column_text = message.partition(_PLACE_IN_MESSAGE)[2].partition(", Column: ")
    if not (comma and line_text.isdecimal() and column_text.isdecimal()):
        return None
    lines = query.split("\n")
    line, column = int(line_text), int(column_text)
    if not 1 <= line <= len(lines):
        return None
    return min(sum(len(one) + 1 for one in lines[: line - 1]) + max(column - 1, 0), len(query))


def _quoted_names(message: str) -> list[str]:
    """Returns what stands in quotes in a message, in order."""
    names: list[str] = []
    at = 0
    while at < len(message):
        quote = message[at]
        end = message.find(quote, at + 1) if quote in _QUOTES_IN_MESSAGES else -1
        if end < 0:
            at += 1
            continue
        names.append(message[at + 1 : end])
        at = end + 1
    return names


def _first_token(tokens: list[SqlToken], name: str) -> SqlToken | None:
    """Returns the first token that is this name, whatever its case, or its last part."""
    wanted = name.lower()
    for candidate in (wanted, wanted.rpartition(".")[2]):
        for token in tokens:
            if token.kind != "sign" and token.text.lower() == candidate:
                return token
    return None


def _place(query: str, start: int, end: int) -> QueryPlace:
    before = query[:start]
    return QueryPlace(before.count("\n") + 1, start - before.rfind("\n"), start, end)
