"""Cut good files anywhere and flip bytes anywhere: what comes back of the sound events, measured.

    python fuzz/damage.py --cuts 1000 --flips 10000

An event is sound if all of its bytes, from its brace to its brace, are as they were: before the
cut, or not the one that was flipped. In a compressed file it is sound if its text stands whole in
what can be decompressed. It is back if the trace has a slice of its name, with its duration or
none: where compressed text was garbled, the trace can look as if its times were in two units, and
then those of the fewer events are reported and not used. With a wrong duration it is not back.

Printed is the share for each layout, in all and the worst, and the longest time. Exit status 1 if
anything but a trace or one sentence within 5 s came, or if less than 95 % of the sound events came
back: from any plain file that was read, and from all compressed ones of a layout together. There
one byte garbles the text in many places, and each can take the sound event beside it along.
"""

import argparse
import gzip
import random
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl
from layouts import LAYOUTS, numbered, spans

from selftime.errors import UnreadableTrace
from selftime.ingest.load import load
from selftime.trace import Trace

__all__ = ["LEAST", "Outcome", "Sample", "damaged", "outcome"]

LEAST: Final = 0.95
"""Share of the sound events that must come back."""
SLOWEST: Final = 5.0
"""Seconds after which a refusal is too late."""
_GZIP: Final = 31  # zlib's window bits for a gzip header and footer


@dataclass(frozen=True, slots=True)
class Sample:
    """A good file: its text, and where in it each event stands."""

    text: bytes
    events: tuple[tuple[int, int], ...]
    packed: bool

    @classmethod
    def of(cls, layout: str, count: int, *, packed: bool) -> "Sample":
        text = LAYOUTS[layout](numbered(count))
        return cls(text, tuple(spans(text, count)), packed)

    @property
    def file(self) -> bytes:
        return gzip.compress(self.text, 6, mtime=0) if self.packed else self.text


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one damaged file."""

    what: str
    sound: int
    back: int
    seconds: float
    refused: str = ""

    @property
    def share(self) -> float:
        return self.back / self.sound if self.sound else 1.0


def damaged(sample: Sample, dice: random.Random, *, flip: bool) -> tuple[str, bytes]:
    """The file cut off, or with one byte changed, and which it was."""
    data = sample.file
    at = dice.randrange(len(data))
    if not flip:
        return f"cut at {at}", data[:at]
    byte = (data[at] + dice.randrange(1, 256)) % 256
    return f"byte {at} to {byte:#04x}", data[:at] + bytes([byte]) + data[at + 1 :]


def _sound(sample: Sample, data: bytes) -> set[int]:
    """The numbers of the events whose text is whole in a damaged file."""
    text = _inflated(data) if sample.packed else data
    return {n for n, (begin, end) in enumerate(sample.events) if sample.text[begin:end] in text}


def _inflated(data: bytes) -> bytes:
    """What can be had of a compressed file, byte by byte."""
    stream, text = zlib.decompressobj(_GZIP), bytearray()
    with suppress(zlib.error):
        for byte in data:
            text += stream.decompress(bytes([byte]))
    return bytes(text)


def outcome(sample: Sample, what: str, data: bytes, path: Path) -> Outcome:
    """Read a damaged file, and count."""
    path.write_bytes(data)
    sound = _sound(sample, data)
    begun = time.perf_counter()
    try:
        trace = load(path, cache=False)
    except UnreadableTrace as error:
        seconds = time.perf_counter() - begun
        return Outcome(what, len(sound), 0, seconds, refused=str(error))
    seconds = time.perf_counter() - begun
    traces = [trace] if isinstance(trace, Trace) else [*trace.traces.values()]
    rows = pl.concat([one.slices.select(pl.col("name").cast(str), "duration") for one in traces])
    found = set(rows.rows())
    told = [event["name"] for event in numbered(len(sample.events))]
    back = sum(not found.isdisjoint({(told[n], 1000 * n + 125), (told[n], None)}) for n in sound)
    return Outcome(what, len(sound), back, seconds)


def _outcomes(sample: Sample, rounds: int, dice: random.Random, *, flip: bool) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory(prefix="selftime-fuzz-") as folder:
        for _ in range(rounds):
            what, data = damaged(sample, dice, flip=flip)
            yield outcome(sample, what, data, Path(folder) / "trace.json")


def _is_bad(one: Outcome, *, packed: bool) -> bool:
    if one.refused:
        return len(one.refused.splitlines()) != 1 or one.seconds > SLOWEST
    return one.share < LEAST and not packed


def _told(title: str, outcomes: list[Outcome], *, packed: bool) -> bool:
    """Print a line on these outcomes; whether one of them, or all together, are bad."""
    read = [one for one in outcomes if not one.refused]
    sound, back = sum(one.sound for one in read), sum(one.back for one in read)
    worst = min(read, key=lambda one: one.share, default=outcomes[0])
    slowest = max(one.seconds for one in outcomes)
    refused = [one for one in outcomes if one.refused]
    print(
        f"{title:24} {len(outcomes):6} files: {back / max(sound, 1):9.4%} of {sound} sound events "
        f"back, worst {worst.share:8.3%} ({worst.back} of {worst.sound}, {worst.what}), at most "
        f"{slowest:.2f} s; {len(refused)} refused, {sum(one.sound > 0 for one in refused)} of them "
        "with sound events",
        flush=True,
    )
    bad = [one for one in outcomes if _is_bad(one, packed=packed)]
    for one in bad[:5]:
        print(f"    {one.what}: {one.back} of {one.sound} back {one.refused}")
    return bool(bad) or back < LEAST * sound


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cuts", type=int, default=1_000)
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    dice = random.Random(asked.seed)  # noqa: S311 - no secret
    bad = False
    shares = 2 * len(LAYOUTS)
    for layout in LAYOUTS:
        for packed in (False, True):
            sample = Sample.of(layout, asked.events, packed=packed)
            for flip, rounds in ((False, asked.cuts), (True, asked.flips)):
                title = f"{layout}, {'gzip' if packed else 'plain'}, {'flips' if flip else 'cuts'}"
                found = list(_outcomes(sample, -(-rounds // shares), dice, flip=flip))
                bad |= _told(title, found, packed=packed)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
