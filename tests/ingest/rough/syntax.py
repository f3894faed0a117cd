"""Section B of the catalogue: JSON's syntax."""

import json
from collections.abc import Callable
from random import Random
from typing import Any, Final

import polars as pl
from tests.ingest.rough.case import (
    HEADER,
    Case,
    N,
    case,
    document,
    events,
    json_text,
    kernel,
    names_in,
    op,
)

from selftime.trace import Trace

GOOD: Final = document()
WRITTEN: Final = [json.dumps(event) for event in events()]
PLACE: Final = 16
"""The event that is damaged: an operator in the middle."""
ODD: Final = WRITTEN[PLACE]
NAME: Final = str(events()[PLACE]["name"])
PATH: Final = r"C:\Users\new\train.py(12): step"


def with_one(written: str, at: int = PLACE, **kwargs: Any) -> bytes:
    """A trace in which the event of that place is written so."""
    return json_text([*WRITTEN[:at], written, *WRITTEN[at + 1 :]], **kwargs)


def spliced(old: str, new: str) -> bytes:
    """A trace in which a part of one event is written so."""
    assert ODD.count(old) == 1
    return with_one(ODD.replace(old, new))


def assert_no_facts(trace: Trace) -> None:
    assert trace.devices.is_empty()
    assert not trace.metadata


def assert_devices(trace: Trace) -> None:
    assert trace.devices["name"].to_list() == ["NVIDIA H100"]


def assert_exact(trace: Trace) -> None:
    assert trace.slices["start"].to_list() == [0, 1500, 2000]


def named(*names: str) -> Callable[[Trace], None]:
    def check(trace: Trace) -> None:
        assert set(names) <= names_in(trace)

    return check


def shown_as(**columns: object) -> Callable[[Trace], None]:
    """The damaged event's values, by column."""

    def check(trace: Trace) -> None:
        row = trace.slices.filter(pl.col("name") == NAME).row(0, named=True)
        assert {name: row[name] for name in columns} == columns

    return check


@case("12a", "recover", "a backslash that begins no escape", sound=N, check=named(PATH))
def a_path_of_windows(_: Random) -> bytes:
    return spliced(NAME, PATH)


@case("12a", "recover", "a backslash", sound=N, check=named(r"a\qb", r"x\é"))
def escapes_that_there_are_not(_: Random) -> bytes:
    return with_one(ODD.replace(NAME, r"a\qb")).replace(b'"op1"', rb'"x\\' + "é".encode() + b'"')


LITERAL: Final = r"C:\new\train.py(12): step"


@case(
    "12b", "recover", "a path with escapes", sound=N, check=named(LITERAL, r"src\bin\run.py(3): f")
)
def escapes_in_a_path_that_there_are(_: Random) -> bytes:
    frame = r'"cat": "python_function", "name": "src\bin\run.py(3): f"'
    text = with_one(ODD.replace(NAME, LITERAL)).decode()
    return text.replace('"cat": "cpu_op", "name": "op1"', frame).encode()


@case("12c", "recover", "a backslash that begins no escape", sound=N, check=named(r"C:\users\x"))
def no_digits_behind_u(_: Random) -> bytes:
    return spliced(NAME, r"C:\users\x")


QUOTED: Final = 'gen.py {"device": "cuda", "id": 1}(0): forward'


@case("13a", "recover", "unescaped quotes in a name", sound=N, check=named(QUOTED))
def json_in_a_name(_: Random) -> bytes:
    return spliced(NAME, QUOTED)


@case("13b", "recover", "unescaped quotes", sound=N, check=named('custom_call_target="x", y'))
def a_call_target_in_a_name(_: Random) -> bytes:
    return spliced(NAME, 'custom_call_target="x", y')


@case("13b", "recover", "unescaped quotes in an argument", sound=N, check=named(NAME))
def a_call_target_in_an_argument(_: Random) -> bytes:
    return spliced('"External id"', '"long_name": "custom_call_target="x", y", "External id"')


@case("14", "recover", "control characters", sound=N, check=named("op\x01\x1b[31m\n\x1f"))
def control_characters(_: Random) -> bytes:
    return spliced(NAME, "op\x01\x1b[31m\n\x1f")


def bandwidth_is_unknown(trace: Trace) -> None:
    [row] = trace.device_args.filter(pl.col("registers") == 77).rows(named=True)
    assert row["bandwidth"] is None
    assert row["correlation"] == 100


BARE: Final = ("inf", "-inf", "Infinity", "-Infinity", "nan", "NaN", "-nan(ind)", "N/A")
FIELD: Final = "memory bandwidth (GB/s)"


def bare_word(word: str) -> Case:
    def bandwidth_of(_: Random) -> bytes:
        args = {**kernel(0)["args"], "registers per thread": 77, FIELD: 0}
        text = json.dumps(kernel(0, args=args)).replace(f'"{FIELD}": 0', f'"{FIELD}": {word}')
        return json_text([*WRITTEN[:3], text, *WRITTEN[4:]])

    bandwidth_of.__name__ = f"bandwidth of {word}"
    told = f"a bare inf, nan or N/A in `{FIELD}`: read as unknown"
    return case("15", "recover", told, sound=N, check=bandwidth_is_unknown)(bandwidth_of)


BARE_WORDS: Final = [bare_word(word) for word in BARE]


@case(
    "15", "recover", "N/A in `ts`", "N/A in `dur`", "no time", sound=N,
    check=shown_as(duration=None, self=None),
)  # fmt: skip
def a_time_that_is_no_number(_: Random) -> bytes:
    return with_one(ODD.replace('"ts": 1050, "dur": 5', '"ts": NaN, "dur": inf'))


@case("16a", "recover", "a comma too many", sound=N)
def a_comma_behind_the_last_event(_: Random) -> bytes:
    return json_text(WRITTEN, end=",\n]}")


@case("16a", "recover", "a trailing comma", sound=N)
def a_comma_behind_the_last_field(_: Random) -> bytes:
    return with_one(ODD[:-2] + ",},}")


@case("16b", "recover", "a missing comma between two events", sound=N)
def no_comma_between_two(_: Random) -> bytes:
    return GOOD.replace(b",\n  " + ODD.encode(), b"\n  " + ODD.encode())


@case("16b", "recover", "a missing comma between two events", sound=N)
def no_comma_at_all(_: Random) -> bytes:
    return json_text(WRITTEN, between="\n")


@case("16c", "recover", "the file ends without `]`", sound=N)
def no_end_of_the_list(_: Random) -> bytes:
    return json_text(WRITTEN, end="\n}\n")


@case("16c", "recover", "the file ends without `}`", sound=N)
def no_end_of_the_object(_: Random) -> bytes:
    return json_text(WRITTEN, end='\n],\n"traceName": "t.json"\n')


@case("16d", "recover", "text after the end: left out", sound=N)
def a_second_footer(_: Random) -> bytes:
    return GOOD + b'],\n  "traceName": "t.json"\n}\n'


@case("16e", "recover", "text that is not an event: left out", sound=N)
def comments(_: Random) -> bytes:
    return with_one(f"// {{ one\n{ODD}\n# two\n/* three */")


@case("16f", "recover", "an event that is not JSON: left out", sound=N - 2, lost=2)
def events_as_python_writes_them(_: Random) -> bytes:
    return with_one(repr(events()[PLACE])).replace(WRITTEN[3].encode(), repr(events()[3]).encode())


@case("16g", "refuse", "a Python repr, not JSON: write it with `json.dump`")
def the_file_as_python_writes_it(_: Random) -> bytes:
    return repr({**HEADER, "traceEvents": events()}).encode()


@case("17a", "accept", sound=N, check=assert_no_facts)
def a_bare_list(_: Random) -> bytes:
    return json.dumps(events()).encode()


@case("17b", "accept", sound=N)
def events_first(_: Random) -> bytes:
    return json.dumps({"traceEvents": events(), **HEADER}).encode()


@case("17b", "accept", sound=N)
def events_last(_: Random) -> bytes:
    return json.dumps({**HEADER, "traceEvents": events()}).encode()


@case("17c", "recover", "`traceEvents` more than once: all are read", sound=N)
def events_twice(_: Random) -> bytes:
    first, second = (", ".join(part) for part in (WRITTEN[:20], WRITTEN[20:]))
    return f'{{"traceEvents": [{first}], "a": 1, "traceEvents": [{second}]}}'.encode()


@case("17d", "refuse", "without a list of `traceEvents`", "keys found: `schemaVersion`")
def no_events_key(_: Random) -> bytes:
    return json.dumps(HEADER).encode()


@case("17d", "refuse", "without a list of `traceEvents`", "keys found: `traceEvents`")
def null_for_events(_: Random) -> bytes:
    return b'{"traceEvents": null, "schemaVersion": 1}'


@case("17e", "recover", "`traceEvents` is nested inside `data.trace`: read from there", sound=N,
      check=assert_devices)  # fmt: skip
def nested_events(_: Random) -> bytes:
    trace = {**HEADER, "traceEvents": events(), "traceName": "t"}
    return json.dumps({"version": 2, "data": {"a": [1], "trace": trace}, "b": 3}).encode()


@case("18a", "recover", "a field twice", sound=N, check=shown_as(start=50_000, duration=5_000))
def a_time_twice(_: Random) -> bytes:
    return spliced('"ts": 1050', '"ts": 1, "ts": 1050')


def both_are_merged(trace: Trace) -> None:
    row = trace.slices.filter(pl.col("name") == NAME).row(0, named=True)
    [args] = trace.op_args.filter(pl.col("id") == row["id"]).rows(named=True)
    assert args["external_id"] == 6
    assert args["sequence"] == 9


@case("18a", "recover", "`args` twice", sound=N, check=both_are_merged)
def arguments_twice(_: Random) -> bytes:
    return with_one(ODD[:-1] + ', "args": {"Sequence number": 9}}')


@case("18b", "accept", sound=3, check=assert_exact)
def exponents(_: Random) -> bytes:
    times = ["1.7e+15", "1.700000000000001500e15", "17000000000000020e-1"]
    written = [json.dumps(op(n)).replace(f'"ts": {1000 + 10 * n}', f'"ts": {ts}')
               for n, ts in enumerate(times)]  # fmt: skip
    return json_text(written)


@case("18c", "recover", "a number in a form that JSON does not allow", sound=N,
      check=shown_as(start=50_000, duration=500))  # fmt: skip
def odd_numbers(_: Random) -> bytes:
    return spliced('"ts": 1050, "dur": 5', '"ts": +01050, "dur": .5, "hex": 0x1F')


@case("18d", "recover", "decimal comma", sound=N - 1, lost=1)
def a_decimal_comma(_: Random) -> bytes:
    return spliced('"ts": 1050', '"ts": 1050,5')


@case("18d", "refuse", "its numbers are written with a decimal comma")
def decimal_commas_throughout(_: Random) -> bytes:
    return json_text([json.dumps(op(n)).replace('"dur": 5', '"dur": 5,25') for n in range(N)])


DEEP: Final = 10_000


@case("19a", "recover", "nested too deep", sound=N, check=shown_as(duration=5_000))
def lists_nested_deep_in_arguments(_: Random) -> bytes:
    return spliced('"External id"', f'"deep": {"[" * DEEP}{"]" * DEEP}, "External id"')


@case("19a", "recover", "nested too deep", sound=N, check=shown_as(duration=5_000))
def events_nested_deep_in_arguments(_: Random) -> bytes:
    deep = '[{"id": ' * DEEP + "1" + "}]" * DEEP
    return spliced('"External id"', f'"deep": {deep}, "External id"')


@case("19b", "accept", sound=N)
def a_thousand_kinds_of_argument(_: Random) -> bytes:
    return document([op(n, args={f"key {n} {k}": k for k in range(1000)}) for n in range(N)])
