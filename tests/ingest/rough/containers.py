"""Section A of the catalogue: containers and bytes."""

import json
from random import Random

from tests.ingest.rough.case import N, case, document, events, json_text

GOOD = document()
WRITTEN = [json.dumps(event) for event in events()]
LAST = GOOD.index(WRITTEN[-1].encode())


@case("1a", "recover", "the file ends inside an event", "without `]`", sound=N - 1, lost=1)
def cut_inside_a_string(dice: Random) -> bytes:
    return GOOD[: GOOD.index(b'"name"', LAST) + dice.randrange(9, 12)]


@case("1b", "recover", "the file ends inside an event", sound=N - 1, lost=1)
def cut_inside_a_number(dice: Random) -> bytes:
    return GOOD[: GOOD.index(b'"ts": ', LAST) + 6 + dice.randrange(1, 3)]


@case("1c", "recover", "the file ends inside an event", sound=N - 1, lost=1)
def cut_inside_an_escape(dice: Random) -> bytes:
    return json_text(
        WRITTEN[:-1], end=',\n  {"ph": "X", "name": "op\\u00ab'[: -dice.randrange(1, 5)]
    )


@case("1d", "recover", "the file ends without `]`", sound=N - 1)
def cut_between_two_events(_: Random) -> bytes:
    return GOOD[:LAST]


@case("1e", "recover", "the file ends without `]`", sound=N)
def cut_after_the_last_event(_: Random) -> bytes:
    return json_text(WRITTEN, end="")


@case("1f", "refuse", "before the first event", "byte")
def cut_before_the_first_event(_: Random) -> bytes:
    return GOOD[: GOOD.index(WRITTEN[0].encode()) + 40]
