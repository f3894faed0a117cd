"""Make a large trace from a small one: the same events again and again, later, with own ids.

    python benchmarks/scale.py SMALL.json[.gz] LARGE.json[.gz] --megabytes 1000

Written as Kineto lays its events out. Times, correlations, External ids, sequence numbers and
Python ids of each copy are shifted past those of the copy before: links stay within a copy.
"""

import argparse
import gzip
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

IDS = ("External id", "external id", "correlation", "Ev Idx", "Python id", "Python parent id")
SEQUENCE = "Sequence number"
LARGEST_ID = 2**40
PAUSE_US = 1000

encode = msgspec.json.Encoder(decimal_format="number").encode


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("small", type=Path)
    parser.add_argument("large", type=Path)
    parser.add_argument("--megabytes", type=int, default=1000)
    options = parser.parse_args()
    written = scale(options.small, options.large, options.megabytes * 1_000_000)
    print(f"{options.large}: {written / 1e6:.0f} MB of JSON")


def scale(small: Path, large: Path, size: int) -> int:
    """Write copies of `small` until the text has `size` bytes; the bytes written."""
    data = small.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    document = json.loads(text, parse_float=Decimal)
    events = document.pop("traceEvents")
    written = 0
    with gzip.open(large, "wb") if large.suffix == ".gz" else large.open("wb") as file:
        for part in _parts(document, events):
            written += file.write(part)
            if written >= size:
                break
        return written + int(file.write(b"\n  ]\n}\n"))


def _parts(header: dict[str, Any], events: list[dict[str, Any]]) -> Iterator[bytes]:
    keys = b"".join(b"  %b: %b,\n" % (encode(key), encode(value)) for key, value in header.items())
    yield b"{\n" + keys + b'  "traceEvents": [\n'
    span = _span(events)
    ids = 1 + max(_int(event, name) for event in events for name in IDS)
    sequences = 1 + max(_int(event, SEQUENCE) for event in events)
    copy = 0
    between = b""
    while True:
        for event in events:
            if copy == 0 or event.get("ph") != "M":
                moved = _moved(event, copy * span, copy * ids, copy * sequences)
                yield between + b"  " + msgspec.json.format(encode(moved), indent=2)
                between = b",\n"
        copy += 1


def _span(events: list[dict[str, Any]]) -> Decimal:
    timed = [event for event in events if event.get("ph") == "X"]
    first = min(event["ts"] for event in timed)
    last = max(event["ts"] + event.get("dur", 0) for event in timed)
    return Decimal(last - first) + PAUSE_US


def _int(event: dict[str, Any], name: str) -> int:
    value = (event.get("args") or {}).get(name)
    return value if isinstance(value, int) and 0 < value < LARGEST_ID else 0


def _moved(event: dict[str, Any], time: Decimal, ids: int, sequences: int) -> dict[str, Any]:
    moved = dict(event)
    if "ts" in moved:
        moved["ts"] = moved["ts"] + time
    if isinstance(moved.get("id"), int):
        moved["id"] += ids
    args = moved.get("args")
    if isinstance(args, dict):
        shifted = {name: args[name] + ids for name in IDS if _int(event, name)}
        if _int(event, SEQUENCE):
            shifted[SEQUENCE] = args[SEQUENCE] + sequences
        moved["args"] = args | shifted
    return moved


if __name__ == "__main__":
    main()
