"""A trace in Perfetto's format, by a reader of its own and by Perfetto's trace processor."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from tests.reports.export.drawn import HOSTILE, REAL, everything, traces
from tests.reports.export.protobuf import Read, read

from selftime.ingest.load import load
from selftime.reports.export import export
from selftime.reports.export.export_format import slice_names_with_overloads
from selftime.testing import sketch, sketch_job
from selftime.testing.simulated_jobs import simulate_job
from selftime.trace import Job, Trace

if TYPE_CHECKING:
    from tests.reports.export.conftest import Ask


def exported(trace: Trace, path: Path) -> Read:
    export(trace, path, to="perfetto")
    return read(path)


def expected(trace: Trace) -> Counter[tuple[str, int, int | None]]:
    """Name, begin and end of each slice."""
    end = pl.col("start") + pl.col("duration")
    rows = trace.slices.select(slice_names_with_overloads(trace), "start", end=end).rows()
    return Counter(rows)


def assert_whole(found: Read, trace: Trace) -> None:
    assert Counter((name, *times) for _, name, *times in found.slices) == expected(trace)
    assert found.flows == found.ends
    assert max(found.flows.values(), default=1) == 1
    launched = trace.slices["launch"].count()
    assert len(found.flows) >= launched


def test_nothing_recorded_is_a_valid_file(tmp_path: Path) -> None:
    found = exported(Trace(), tmp_path / "a.pftrace")
    assert found.tracks == {}
    assert found.slices == []


def test_a_thing_of_every_kind(tmp_path: Path) -> None:
    trace = everything(tmp_path / "trace.json")
    found = exported(trace, tmp_path / "a.pftrace")
    assert_whole(found, trace)
    assert len(found.flows) == 4
    names = {number: track.get(2, b"").decode() for number, track in found.tracks.items()}
    samples = {names[track]: values for track, values in found.samples.items()}
    assert samples["load busy"] == [(at * 1000, at / 3) for at in range(4)]
    assert samples["GPU 0 memory allocated"] == [((5 + at) * 1000, 100 * at) for at in range(3)]
    assert [(name, time) for _, name, time in found.marks] == [("mark", 20250)]
    assert {name or "(no name)" for name in HOSTILE} <= {name for _, name, *_ in found.slices}


def test_arguments_have_their_types(tmp_path: Path) -> None:
    found = exported(everything(tmp_path / "trace.json"), tmp_path / "a.pftrace")
    told = {slice_[1]: args for slice_, args in zip(found.slices, found.args, strict=True)}
    assert told["gemm"]["grid"] == [4, 2, 1]
    assert told["gemm"]["est. achieved occupancy %"] == 12.5
    assert told["within neither"]["bytes"] == -1
    assert told["aten::mm.out"]["Input Dims"] == "[[2,3],[]]"


def test_what_crosses_lies_on_a_track_beside(tmp_path: Path) -> None:
    trace = sketch("gpu 7 | aaaa\ngpu 7 |   bbbb\ngpu 7 |    c")
    found = exported(trace, tmp_path / "a.pftrace")
    names = {number: track.get(2, b"").decode() for number, track in found.tracks.items()}
    lanes = {name: names[track] for track, name, *_ in found.slices}
    assert lanes["a"] == "stream 7"
    assert lanes["b"] == "stream 7 (2)"
    assert_whole(found, trace)


def test_what_never_ended_hides_nothing(tmp_path: Path) -> None:
    trace = everything(tmp_path / "trace.json")
    found = exported(trace, tmp_path / "a.pftrace")
    [(track, *_)] = [one for one in found.slices if one[3] is None]
    assert found.tracks[track][2] == b"thread 9 (no end)"


def test_what_was_there_before_the_recording_comes_first(tmp_path: Path) -> None:
    trace = everything(tmp_path / "trace.json")
    early = replace(trace, memory=trace.memory.with_columns(pl.col("time") - 1_000_000))
    found = exported(early, tmp_path / "a.pftrace")
    times = [time for samples in found.samples.values() for time, _ in samples]
    assert min(times) == 0
    assert min(begin for *_, begin, _ in found.slices) == 995_000


@given(traces())
def test_drawn_traces_are_whole(tmp_path_factory: pytest.TempPathFactory, trace: Trace) -> None:
    assert_whole(exported(trace, tmp_path_factory.mktemp("drawn") / "a.pftrace"), trace)


COUNTS = "select count(*), sum(dur), sum(dur < 0) from slice"
FLOWS = "select count(*) from flow"
LOST = "select name from stats where severity in ('error', 'data_loss') and value > 0"
SAMPLES = """
    select t.name, count(*), sum(value) from counter c join counter_track t on t.id = c.track_id
    group by 1 order by 1
"""
SUMS = "select name, count(*), sum(dur) from slice where dur >= 0 group by 1 order by 1"


def test_perfetto_reads_a_thing_of_every_kind(in_perfetto: "Ask", tmp_path: Path) -> None:
    trace = everything(tmp_path / "trace.json")
    path = tmp_path / "a.pftrace"
    export(trace, path, to="perfetto")
    sums, flows, samples, lost = in_perfetto(path, SUMS, FLOWS, SAMPLES, LOST)
    ended = trace.slices.drop_nulls("duration")
    own = Counter(slice_names_with_overloads(trace).cast(pl.String).gather(ended["id"]).to_list())
    shown = {name or "": count for name, count, _ in sums if name != "mark"}
    assert shown == {name.partition("\0")[0]: count for name, count in own.items()}
    assert flows == [[4]]
    assert [name for name, *_ in samples] == [
        "GPU 0 memory allocated",
        "GPU 0 memory reserved",
        "load busy",
    ]
    assert samples[0][1:] == [3, 300.0]
    assert lost == []


@pytest.mark.parametrize("name", REAL)
@pytest.mark.sweep(1)
def test_perfetto_shows_all_of_a_real_trace(
    name: str, real_traces: Path, in_perfetto: "Ask", tmp_path: Path
) -> None:
    trace = load(real_traces / f"{name}.json.gz")
    assert isinstance(trace, Trace)
    path = tmp_path / "a.pftrace"
    told = export(trace, path, to="perfetto")
    [[counts], [[flows]], samples, lost, sums] = in_perfetto(
        path, COUNTS, FLOWS, SAMPLES, LOST, SUMS
    )
    marks = told.written["marks"]
    unknown = trace.slices["duration"].null_count()
    assert counts == [
        trace.slices.height + marks,
        trace.slices["duration"].sum() - unknown,
        unknown,
    ]
    assert flows == told.written["arrows"] >= trace.slices["launch"].count()
    assert sum(count for _, count, _ in samples) == told.written["samples"]
    assert lost == []
    named = trace.slices.with_columns(
        slice_names_with_overloads(trace).cast(pl.String).alias("name")
    )
    by_name = named.group_by("name").agg(pl.col("duration").sum())
    shown = {name: total for name, _, total in sums}
    assert {name: shown.get(name) for name in by_name["name"]} == dict(by_name.iter_rows())


def job_of(text: str) -> Job:
    job = sketch_job(text)
    assert isinstance(job, Job)
    return job


def test_the_ranks_of_a_job_lie_side_by_side(in_perfetto: "Ask", tmp_path: Path) -> None:
    job = job_of("rank 0\ncall 1 | k  m\ngpu 7 | kk  mmm\nrank 1\ncall 1 | k\ngpu 7 |  kk")
    path = tmp_path / "job.pftrace"
    told = export(job, path, to="perfetto")
    total = sum(trace.slices.height for trace in job)
    assert told.written["slices"] == total
    [[counts], [[flows]], lost, tracks] = in_perfetto(
        path, COUNTS, FLOWS, LOST, "select distinct name from track where parent_id is null"
    )
    assert counts == [total, sum(int(t.slices["duration"].sum()) for t in job), 0]
    assert flows == sum(trace.slices["launch"].count() for trace in job) == 3
    assert lost == []
    assert {name.partition(":")[0] for [name] in tracks} == {"rank 0", "rank 1"}
    assert told.left_out == {"alignments of clocks: no collective is shared": 2}


@pytest.mark.sweep
def test_the_clocks_of_ranks_are_brought_together(tmp_path: Path, in_perfetto: "Ask") -> None:
    simulated = simulate_job(ranks=2, steps=8)
    apart = {rank: ahead for rank, (ahead, _) in simulated.clocks.items()}
    assert abs(apart[0] - apart[1]) > 10_000
    for rank, data in simulated.traces.items():
        (tmp_path / f"rank{rank}.json").write_bytes(data)
    job = load(tmp_path, cache=False)
    assert isinstance(job, Job)
    told = export(job, tmp_path / "job.pftrace", to="perfetto")
    ends = """
        select s.track_id, s.ts + s.dur from slice s where s.name like 'nccl%' order by 1, 2
    """
    [rows] = in_perfetto(tmp_path / "job.pftrace", ends)
    ranks: dict[int, list[int]] = {}
    for track, end in rows:
        ranks.setdefault(track, []).append(end)
    one, other = ranks.values()
    assert max(abs(a - b) for a, b in zip(one, other, strict=True)) < 1_000
    assert told.left_out == {}
