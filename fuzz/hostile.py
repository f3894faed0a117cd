"""Files that cost a careless reader more than they hold: each kind as a generator of a size.

Every generator takes a size `n` and returns the bytes of a file of about that many parts, so that
the cost at `n` and at `4 n` tells whether any step is quadratic. `scaling.py` measures that; the
tests in `tests/ingest/test_limits.py` read the same files small.
"""

import gzip
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

__all__ = ["TRACES", "Hostile", "event", "whole"]

GOOD: Final = 3
"""Sound events before and after whatever is hostile."""


@dataclass(frozen=True, slots=True)
class Hostile:
    """One kind of file: how to make it, how large it is tried, and what must come back."""

    make: Callable[[int], bytes]
    size: int
    """The size from which the cost is measured: large enough to take some tenths of a second."""
    good: int = 2 * GOOD
    """Sound events that must come back; 0 where the whole file may be refused."""


def event(number: int, **fields: Any) -> str:
    """An operator of 5 us, one each 10 us; fields that are given stand instead."""
    base = {"ph": "X", "cat": "cpu_op", "name": f"op{number}", "pid": 1, "tid": 1}
    return json.dumps({**base, "ts": 10 * number, "dur": 5, "args": {}, **fields})


def whole(events: Iterable[str]) -> bytes:
    """A trace of these events."""
    return ('{"schemaVersion": 1, "traceEvents": [' + ",\n".join(events) + "]}").encode()


def _around(hostile: str, *, keys: str = "") -> bytes:
    """A text among sound events, and text behind the array of events."""
    before = [event(n, name=f"good{n}") for n in range(GOOD)]
    after = [event(10**6 + n, name=f"good{GOOD + n}") for n in range(GOOD)]
    events = ",\n".join([*before, *([hostile] if hostile else []), *after])
    return f'{{"schemaVersion": 1, "traceEvents": [{events}]{keys}}}'.encode()


def _among(make: Callable[[int], Iterable[str]]) -> Callable[[int], bytes]:
    return lambda n: _around(",\n".join(make(n)))


def _numbered(**fields: Callable[[int], Any]) -> Callable[[int], bytes]:
    """`n` events whose fields follow from their number."""
    return _among(
        lambda n: (event(k, **{key: field(k) for key, field in fields.items()}) for k in range(n))
    )


def _in_args(make: Callable[[int], str]) -> Callable[[int], bytes]:
    return lambda n: _around(
        '{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1, '
        f'"args": {make(n)}}}'
    )


def _in_keys(make: Callable[[int], str]) -> Callable[[int], bytes]:
    return lambda n: _around("", keys=f', "later": {make(n)}')


def _damaged(make: Callable[[int], str]) -> Callable[[int], bytes]:
    """An event that is not JSON, with a text in it."""
    return lambda n: _around(
        '{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": ???, "args": '
        f"{{{make(n)}}}}}"
    )


def _halves(n: int, *, crossed: bool) -> Iterable[str]:
    ends = range(n) if crossed else range(n - 1, -1, -1)
    begins = (event(k, ph="B", name=f"h{k}") for k in range(n))
    return [*begins, *(event(2 * n + at, ph="E", name=f"h{k}") for at, k in enumerate(ends))]


def _labels(n: int) -> Iterable[str]:
    return (
        event(k, ph="M", name="process_labels", args={"labels": f"label {k}"}) for k in range(n)
    )


def _frames_and_operators(n: int) -> Iterable[str]:
    for k in range(n):
        yield event(k, cat="python_function", name="f.py(1): f", ts=k, dur=3 * n - 2 * k)
    for k in range(n):
        yield event(k, tid=1, ts=4 * n + k, dur=1)


def _deep_then_records(n: int) -> Iterable[str]:
    for k in range(n):
        yield event(k, ts=k, dur=3 * n - 2 * k)
    for k in range(n):
        yield event(k, ph="i", name="[memory]", ts=4 * n + k, args={"Bytes": 1, "Addr": k})


def _threads_with_all(n: int) -> Iterable[str]:
    for k in range(n):
        yield event(k, tid=k)
        yield event(k, tid=k, cat="python_function", name="f.py(1): f", dur=8)
        yield event(k, tid=k, ph="i", name="[memory]", args={"Bytes": 1, "Addr": k})
        yield event(k, tid=k, ph="C", name="c", args={"v": k})


def _launches(correlation: Callable[[int], Any]) -> Callable[[int], bytes]:
    def make(n: int) -> Iterable[str]:
        for k in range(n):
            args = {"correlation": correlation(k), "device": 0, "stream": 7}
            yield event(k, cat="cuda_runtime", name="cudaLaunchKernel", args=args)
            yield event(k, cat="kernel", pid=0, tid=7, ts=10 * k + 7, dur=2, args=args)

    return _among(make)


def _described(n: int) -> bytes:
    """As many devices as kernels, each described."""
    kernels = (
        event(k, cat="kernel", pid=k, tid=7, args={"device": k, "stream": 7}) for k in range(n)
    )
    told = json.dumps([{"id": k, "name": f"device {k}"} for k in range(n)])
    return _around(",".join(kernels), keys=f', "deviceProperties": {told}')


def _members(n: int) -> bytes:
    """As many members of gzip as events, and as many empty ones."""
    text = whole(event(k) for k in range(n))
    size = max(1, len(text) // n)
    parts = [gzip.compress(text[at : at + size], 1) for at in range(0, len(text), size)]
    return gzip.compress(b"").join(parts)


def _headers(n: int) -> bytes:
    """A sound member, then begins of members, each within the file name that the one before has."""
    begin = b"\x1f\x8b\x08\x08\x01\x01\x01\x01\x01\x01"
    return gzip.compress(_around("")) + begin * n + b"\0\xff"


TRACES: Final[Mapping[str, Hostile]] = MappingProxyType(
    {
        "top-level keys": Hostile(
            lambda n: _around("", keys="".join(f', "k{k}": {k}' for k in range(n))), 50_000
        ),
        "one top-level key again and again": Hostile(
            lambda n: _around("", keys=', "k": 1' * n), 50_000
        ),
        "events again and again": Hostile(
            lambda n: _around("", keys=f', "traceEvents": [{event(1)}]' * n), 2_000
        ),
        "depth in a key": Hostile(_in_keys(lambda n: "[" * n + "]" * n), 100_000),
        "objects in objects in a key": Hostile(
            _in_keys(lambda n: '{"a":' * n + "1" + "}" * n), 100_000
        ),
        "depth in arguments": Hostile(_in_args(lambda n: "[" * n + "]" * n), 100_000),
        "objects in arguments": Hostile(
            _in_args(lambda n: '{"a":' * n + "1" + "}" * n), 100_000
        ),
        "both in arguments": Hostile(_in_args(lambda n: '[{"a":' * n + "1" + "}]" * n), 50_000),
        "depth in a shape": Hostile(
            _in_args(lambda n: '{"Input Dims": ' + "[" * n + "]" * n + "}"), 100_000
        ),
        "events in events": Hostile(
            _damaged(lambda n: '"a": [' + '{"ph": "X", "a": [' * n), 10_000
        ),
        "events in a broken event": Hostile(
            _damaged(lambda n: ('"a": [' + '{"ph": 1, "a": [' * 400 + "0, " * n + "?")), 100_000
        ),
        "deep events that never end": Hostile(
            _damaged(lambda n: ('"a": [\n{"ph": "X", "args": {"b": ' + "[" * 1500) * n), 200
        ),
        "what begins as a Python repr": Hostile(_damaged(lambda n: "}, {'ph' " * n), 10_000),
        "a long name": Hostile(lambda n: _around(event(1, name="x" * n)), 4_000_000),
        "a name of escapes": Hostile(lambda n: _around(event(1, name='"' * n)), 2_000_000),
        "a name of surrogates": Hostile(lambda n: _around(event(1, name="\ud83d" * n)), 300_000),
        "a long key": Hostile(_in_args(lambda n: f'{{"{"k" * n}": 1}}'), 4_000_000),
        "a string of escapes in a key": Hostile(
            _in_keys(lambda n: '"' + '\\"' * n + '"'), 2_000_000
        ),
        "a string of escapes that never ends": Hostile(
            _in_keys(lambda n: '"' + '\\"' * n), 100_000
        ),
        "escapes without an end in an event": Hostile(
            _damaged(lambda n: '"a": "' + '\\"' * n + "\x01"), 50_000, good=GOOD
        ),
        "names within names": Hostile(_damaged(lambda n: '"name":"' * n), 20_000),
        "ends of arrays in an event": Hostile(_damaged(lambda n: '}],"a"' * n), 10_000, good=GOOD),
        "commas": Hostile(lambda n: _around("," * n), 1_000_000),
        "new lines in damage": Hostile(_damaged(lambda n: "\n" * n), 100_000),
        "new lines after the end": Hostile(lambda n: _around("") + b"x" + b"\n" * n, 100_000),
        "brackets for events": Hostile(lambda n: _around("]" * n), 500_000, good=GOOD),
        "digits in damage": Hostile(_damaged(lambda n: '"a":' + "1" * n + "x"), 20_000),
        "hexadecimal digits": Hostile(_in_args(lambda n: f'{{"a": 0x{"f" * n}}}'), 100_000),
        "a number of many digits": Hostile(
            lambda n: _around(event(1).replace('"ts": 10', f'"ts": {"9" * n}')), 1_000_000
        ),
        "a time of many decimals": Hostile(
            lambda n: _around(event(1).replace('"ts": 10', f'"ts": 1.{"9" * n}')), 1_000_000
        ),
        "huge exponents": Hostile(_numbered(ts=lambda k: f"1e-{k}999999"), 10_000),
        "keys of arguments": Hostile(
            _among(lambda n: (event(k, args={f"key{k}": k}) for k in range(n))), 50_000
        ),
        "keys of one event": Hostile(
            _in_args(lambda n: json.dumps({f"key{k}": k for k in range(n)})), 200_000
        ),
        "a key of one event again and again": Hostile(
            _in_args(lambda n: "{" + '"correlation": 1, ' * n + '"x": 1}'), 200_000
        ),
        "counters of many series": Hostile(
            lambda n: _around(event(1, ph="C", args={f"s{k}": k for k in range(n)})), 50_000
        ),
        "threads": Hostile(_numbered(tid=lambda k: k), 20_000),
        "processes": Hostile(_numbered(pid=lambda k: k), 20_000),
        "threads with all": Hostile(_among(_threads_with_all), 4_000),
        "labels of a process": Hostile(_among(_labels), 20_000),
        "devices": Hostile(_described, 4_000),
        "categories": Hostile(_numbered(cat=lambda k: f"cat{k}"), 20_000),
        "phases": Hostile(_numbered(ph=lambda k: f"Z{k}"), 20_000),
        "all crossing": Hostile(
            lambda n: _around(",".join(event(k, ts=2 * k, dur=3 * n) for k in range(n))), 20_000
        ),
        "crossing by rounding": Hostile(
            lambda n: _around(
                ",".join(event(k, ts=0.9 * k, dur=n + 1.5 * k) for k in range(n))
            ),
            2_000,
        ),
        "all nested": Hostile(
            lambda n: _around(",".join(event(k, ts=k, dur=3 * n - 2 * k) for k in range(n))),
            20_000,
        ),
        "calls nested": Hostile(
            lambda n: _around(
                ",".join(
                    event(k, cat="cuda_runtime", ts=k, dur=3 * n - 2 * k) for k in range(n)
                )
            ),
            20_000,
        ),
        "frames nested, operators behind": Hostile(_among(_frames_and_operators), 10_000),
        "operators nested, records behind": Hostile(_among(_deep_then_records), 10_000),
        "equal times": Hostile(_numbered(ts=lambda _: 5), 20_000),
        "begins and ends nested": Hostile(_among(lambda n: _halves(n, crossed=False)), 10_000),
        "begins and ends crossed": Hostile(_among(lambda n: _halves(n, crossed=True)), 10_000),
        "flows of one id": Hostile(
            _among(
                lambda n: (event(k, ph="sf"[k % 2], cat="ac2g", id=1, bp="e") for k in range(n))
            ),
            50_000,
        ),
        "links backward of one id": Hostile(
            _among(
                lambda n: (
                    event(k, args={"Sequence number": 1, "Fwd thread id": k % 2}) for k in range(n)
                )
            ),
            20_000,
        ),
        "one correlation": Hostile(_launches(lambda _: 5), 10_000),
        "correlations of text": Hostile(_launches(lambda k: f"c{k}"), 10_000),
        "members of gzip": Hostile(_members, 5_000, good=0),
        "headers in a header of gzip": Hostile(_headers, 20_000, good=0),
        "not UTF-8": Hostile(
            lambda n: _around(event(1, name="?")).replace(b'"?"', b'"%b"' % (b"\xff\xfe" * n)),
            500_000,
        ),
        "NUL": Hostile(lambda n: _around("\0" * n), 1_000_000),
    }
)  # fmt: skip
