"""Make a large trace from a small one: the same events again and again, later, with own ids.

    python benchmarks/scale.py SMALL.json[.gz] LARGE.json[.gz] --megabytes 1000

Written as Kineto lays its events out. Times, correlations, External ids, sequence numbers, Python
ids, flows and the numbers of steps are shifted in each copy past those of the copy before: links
stay within a copy, and no step is there twice.
"""

import argparse
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

IDS: Final = (
    "External id",
    "external id",
    "correlation",
    "Ev Idx",
    "Python id",
    "Python parent id",
)
SEQUENCE: Final = "Sequence number"
LARGEST_ID: Final = 2**40
"""Larger numbers mark what has no id."""
PAUSE_US: Final = 1000
"""Between two copies."""
STEP: Final = re.compile(r"ProfilerStep#(\d+)")

Event = dict[str, Any]


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
    with gzip.open(large, "wb", 6) if large.suffix == ".gz" else large.open("wb") as file:
        for part in _parts(document, events):
            written += file.write(part)
            if written >= size:
                break
        return written + int(file.write(b"\n  ]\n}\n"))


@dataclass(frozen=True, slots=True)
class Shift:
    """How far one copy's numbers lie from those of the copy before."""

    time: Decimal
    ids: int
    sequences: int
    steps: int

    @classmethod
    def of(cls, events: list[Event]) -> "Shift":
        timed = [event for event in events if event.get("ph") == "X"]
        first = min(event["ts"] for event in timed)
        last = max(event["ts"] + event.get("dur", 0) for event in timed)
        ids = (_int(_args(event), name) for event in events for name in IDS)
        steps = {int(found[1]) for event in events if (found := _step(event))}
        return cls(
            time=Decimal(last - first) + PAUSE_US,
            ids=1 + max(*ids, *(_int(event, "id") for event in events)),
            sequences=1 + max(_int(_args(event), SEQUENCE) for event in events),
            steps=1 + max(steps) - min(steps) if steps else 0,
        )


def _parts(header: dict[str, Any], events: list[Event]) -> Iterator[bytes]:
    keys = "".join(f"  {_json(key)}: {_json(value)},\n" for key, value in header.items())
    yield f'{{\n{keys}  "traceEvents": [\n'.encode()
    shift = Shift.of(events)
    first = [_joined(_pieces(event, shift)) for event in events]
    lasting = (event.get("ph") != "M" for event in events)
    later = [pieces for pieces, stays in zip(first, lasting, strict=True) if stays]
    between, copy = "", 0
    while True:
        for pieces in later if copy else first:
            told = (one if isinstance(one, str) else _moved(*one, copy) for one in pieces)
            yield (between + "".join(told)).encode()
            between = ",\n"
        copy += 1


Moving = tuple[Any, Any]
"""A number of the first copy, and how far the next one's lies from it."""


def _pieces(event: Event, shift: Shift) -> list[str | Moving]:
    """An event as text, with what changes from copy to copy in between."""
    found: list[str | Moving] = ["  {"]
    for key, value in event.items():
        found += [",\n    " if len(found) > 1 else "\n    ", f"{_json(key)}: "]
        step = _step(event) if key == "name" else None
        if key == "ts":
            found.append((value, shift.time))
        elif key == "id" and _int(event, key):
            found.append((value, shift.ids))
        elif step:
            found += ['"ProfilerStep#', (int(step[1]), shift.steps), '"']
        elif key == "args" and isinstance(value, dict):
            found += _members(value, shift)
        else:
            found.append(_json(value))
    return [*found, "\n  }"]


def _members(args: dict[str, Any], shift: Shift) -> list[str | Moving]:
    found: list[str | Moving] = ["{"]
    for key, value in args.items():
        found += [", " if len(found) > 1 else "\n      ", f"{_json(key)}: "]
        shifted = _int(args, key)
        if shifted and key in IDS:
            found.append((value, shift.ids))
        elif shifted and key == SEQUENCE:
            found.append((value, shift.sequences))
        else:
            found.append(_json(value))
    return [*found, "\n    }"]


def _joined(pieces: list[str | Moving]) -> list[str | Moving]:
    """Texts that follow each other as one, which is much faster to write."""
    found: list[str | Moving] = []
    for piece in pieces:
        if isinstance(piece, str) and found and isinstance(found[-1], str):
            found[-1] += piece
        else:
            found.append(piece)
    return found


def _moved(value: Any, distance: Any, copy: int) -> str:
    return format(value + copy * distance, "f" if isinstance(value, Decimal) else "")


def _json(value: Any) -> str:
    """As JSON, floats digit by digit as they were read."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(_json, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_json(key)}: {_json(one)}" for key, one in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def _args(event: Event) -> dict[str, Any]:
    args = event.get("args")
    return args if isinstance(args, dict) else {}


def _step(event: Event) -> re.Match[str] | None:
    name = event.get("name")
    return STEP.fullmatch(name) if isinstance(name, str) else None


def _int(values: dict[str, Any], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) and 0 < value < LARGEST_ID else 0


if __name__ == "__main__":
    main()
