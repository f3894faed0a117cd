import gc
import weakref
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime import schema
from selftime.analysis.timeline import slice_lanes
from selftime.analysis.timeline.lanes import lanes_without_overlap
from selftime.errors import UsageError
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.timeline import timeline

if TYPE_CHECKING:
    from tests.conftest import ReadReal
    from tests.views.conftest import Golden

US = 1_000


def drawn(trace: Trace, **options: Any) -> list[tuple[Any, ...]]:
    """Rows of slices: track, row, kind, name, start and duration in us, count."""
    table = timeline(trace, **options).filter(pl.col("kind").is_in(["slice", "merged"]))
    columns = ("track", "row", "kind", "name", "start", "duration", "count")
    return table.with_columns(pl.col("start", "duration") // US).select(columns).rows()


def flows(trace: Trace, name: str) -> list[tuple[Any, ...]]:
    """Flows of the first slice of a name: what they are, and from and to which slices and times."""
    text = trace.slices["name"].cast(pl.String)
    return flows_of_slice(trace, trace.slices.filter(text == name)["id"][0])


def flows_of_slice(trace: Trace, selected: int) -> list[tuple[Any, ...]]:
    text = trace.slices["name"].cast(pl.String)
    table = timeline(trace, selected=selected).filter(pl.col("kind") == "flow")
    return [
        (flow, text[id_], start // US, text[to], time // US)
        for flow, id_, start, to, time in table.select(
            "name", "id", "start", "to", "to_time"
        ).iter_rows()
    ]


def flows_of_work(trace: Trace, name: str) -> list[tuple[Any, ...]]:
    launched = trace.slices.filter(pl.col("launch").is_not_null())
    numbers = launched.filter(pl.col("name").cast(pl.String) == name)["id"]
    return [flow for number in numbers for flow in flows_of_slice(trace, number)]


def test_nothing_recorded_shows_nothing() -> None:
    assert timeline(Trace()).is_empty()
    assert timeline(Trace(), what="tracks").is_empty()


def test_slices_at_least_a_pixel_wide_are_as_they_are() -> None:
    trace = sketch("""
        cpu 1  | aaaa bbb
        call 1 |  k    m
        gpu 7  |    kk   mm
    """)

    assert drawn(trace, end=100 * US, pixels=10) == [
        (0, 0, "slice", "a", 0, 40, 1),
        (0, 0, "slice", "b", 50, 30, 1),
        (0, 1, "slice", "k", 10, 10, 1),
        (0, 1, "slice", "m", 60, 10, 1),
        (1, 0, "slice", "k", 30, 20, 1),
        (1, 0, "slice", "m", 80, 20, 1),
    ]


def test_narrower_ones_that_begin_in_one_pixel_are_merged() -> None:
    trace = sketch("gpu 7 | a bb c dddddd e f  ")  # a pixel of 70 us: abc, d, ef

    assert drawn(trace, end=210 * US, pixels=3) == [
        (0, 0, "merged", "b", 0, 60, 3),
        (0, 0, "slice", "d", 70, 60, 1),
        (0, 0, "merged", "e", 140, 30, 2),
    ]


def test_a_wide_slice_is_not_merged_with_what_begins_in_its_pixel() -> None:
    trace = sketch("gpu 7 | a b cccccccc d e")

    assert drawn(trace, end=160 * US, pixels=2) == [
        (0, 0, "merged", "a", 0, 30, 2),
        (0, 0, "slice", "c", 40, 80, 1),
        (0, 0, "merged", "d", 130, 30, 2),
    ]


def test_a_merged_row_has_the_name_of_the_longest_and_the_category_of_most_time() -> None:
    trace = sketch("""
        gpu 7  | a a bbb a
        copy 7 |          mmmm
    """)
    table = timeline(trace, end=200 * US, pixels=1, tracks="device")
    [row] = table.filter(pl.col("kind") == "merged").iter_rows(named=True)

    assert (row["name"], row["category"], row["count"]) == ("m", "kernel", 5)
    assert (row["duration"], row["busy"], row["id"]) == (130 * US, 100 * US, None)


def test_rows_by_name_lie_by_their_time_and_the_list_of_tracks_has_them() -> None:
    trace = sketch("""
        cpu 1  | aaaaaaa
        cpu 1  |  b b
        call 1 |  kmk m
        gpu 7  |    kk mmm kk mmm
    """)

    assert [row[:4] for row in drawn(trace, lanes="name", tracks="device")] == [
        (1, 0, "slice", "m"),
        (1, 0, "slice", "m"),
        (1, 1, "slice", "k"),
        (1, 1, "slice", "k"),
    ]
    assert drawn(trace, lanes="name", tracks="host") == drawn(trace, tracks="host")
    listed = timeline(trace, what="tracks", lanes="name")
    names = listed.filter(pl.col("kind") == "row")
    assert names.select("track", "row", "name", "duration", "count").rows() == [
        (1, 0, "m", 60 * US, 2),
        (1, 1, "k", 40 * US, 2),
    ]
    assert listed.filter(pl.col("track") == 1)["rows"][0] == 2
    kernel = trace.slices.filter(pl.col("launch").is_not_null())["id"][0]
    flow = timeline(trace, selected=kernel, lanes="name").filter(pl.col("kind") == "flow")
    assert flow["to_row"].to_list() == [1]


def test_overlapping_work_of_a_stream_lies_on_rows_of_its_own() -> None:
    trace = sketch("""
        gpu 7 | aaaa   dd e
        gpu 7 |  bbbbbb
        gpu 7 |   cc ff
    """)

    assert [row[:4] for row in drawn(trace)] == [
        (0, 0, "slice", "a"),
        (0, 0, "slice", "f"),
        (0, 0, "slice", "d"),
        (0, 0, "slice", "e"),
        (0, 1, "slice", "b"),
        (0, 2, "slice", "c"),
    ]


def test_a_window_shows_what_lies_in_it_and_what_reaches_into_it() -> None:
    trace = sketch("cpu 1 | aaaa bb cccc dd")

    assert [row[3] for row in drawn(trace, start=30 * US, end=90 * US)] == ["a", "b", "c"]
    assert [row[3] for row in drawn(trace, start=40 * US, end=80 * US)] == ["b"]
    assert drawn(trace, start=300 * US, end=400 * US) == []


def test_tracks_and_rows_can_be_chosen() -> None:
    trace = sketch("""
        cpu 1  | aaaa
        cpu 1  |  bb
        call 1 |  k
        gpu 7  |    k
    """)

    assert [row[3] for row in drawn(trace, tracks="device")] == ["k"]
    assert [row[3] for row in drawn(trace, tracks="0", depth=2)] == ["a", "b"]
    assert timeline(trace, tracks="0")["kind"].unique().to_list() == ["slice"]
    assert timeline(trace, tracks="counters")["kind"].unique().to_list() == ["counter"]
    assert timeline(trace, tracks="device")["category"].unique(maintain_order=True).to_list() == [
        "kernel",
        "queue",
    ]


def test_slices_without_a_length_or_an_end_are_there() -> None:
    trace = sketch("cpu 1 | aaaa b\ngpu 7 | k")
    odd = Trace(
        slices=trace.slices.with_columns(duration=pl.Series([40 * US, 0, None], dtype=pl.Int64)),
        tracks=trace.tracks,
    )
    rows = timeline(odd).filter(pl.col("kind") == "slice").select("name", "duration", "count")

    assert rows.rows() == [("a", 40 * US, 1), ("b", None, 1), ("k", 0, 1)]


def test_marks_are_merged_by_pixel_on_their_track() -> None:
    trace = sketch("cpu 1 | aaaaaaaaaa")
    marks = pl.DataFrame(
        [(10, 0, "", "first"), (12, 0, "", "second"), (90 * US, 0, "", "third")],
        schema=schema.INSTANTS.dtypes,
        orient="row",
    )
    table = timeline(Trace(slices=trace.slices, tracks=trace.tracks, instants=marks), pixels=10)

    assert table.filter(pl.col("kind") == "instant").select(
        "track", "name", "start", "duration", "count"
    ).rows() == [(0, "first", 10, 2, 2), (0, "third", 90 * US, 0, 1)]


def test_launches_flow_to_their_work_from_either_end_and_from_what_is_around() -> None:
    trace = sketch("""
        python 1 | ffffff
        cpu 1    | aaaa
        call 1   |  k m
        call 2   |   n
        gpu 7    |    k  m
        gpu 8    |     n
    """)
    first, second = ("launch", "k", 10, "k", 30), ("launch", "m", 30, "m", 60)

    assert flows(trace, "k") == [first]
    assert flows(trace, "a") == flows(trace, "f") == [first, second]
    kernels = trace.slices.filter(pl.col("launch").is_not_null())["id"].to_list()
    table = timeline(trace, start=0, end=10, selected=kernels[0])
    assert table.filter(pl.col("kind") == "flow").select(
        "id", "track", "row", "to", "to_track", "to_row"
    ).rows() == [(2, 1, 1, kernels[0], 3, 0)]  # though neither is seen


def test_forward_flows_to_backward_of_the_nearest_that_has_one() -> None:
    trace = sketch("""
        b = MmBackward0; forward = a
        cpu 1 | aaaa
        cpu 1 |  i
        cpu 2 |      bb
    """)
    found = [("backward", "a", 0, "MmBackward0", 50)]

    assert flows(trace, "a") == flows(trace, "i") == flows(trace, "MmBackward0") == found


def test_a_blocking_call_waits_for_the_last_work_that_ended_in_it() -> None:
    trace = sketch("""
        s = cudaDeviceSynchronize
        t = cudaStreamSynchronize
        call 1 | k m ssssss    t
        gpu 7  |   kkkkk
        gpu 8  |     m
    """)
    found = [("wait", "k", 70, "cudaDeviceSynchronize", 100)]

    assert flows(trace, "cudaDeviceSynchronize") == found
    assert flows(trace, "cudaStreamSynchronize") == []  # nothing ran
    kernels = trace.slices.filter(pl.col("category").cast(pl.String) == "kernel")["id"].to_list()
    told = [timeline(trace, selected=kernel)["name"].to_list().count("wait") for kernel in kernels]
    assert told == [1, 0]


def test_a_copy_that_holds_the_host_is_waited_for() -> None:
    trace = sketch("""
        c = cudaMemcpyAsync
        d = Memcpy DtoH (Device -> Pageable); launched_by = c
        call 1 | k cccccccc
        gpu 7  |   kkkk
        copy 7 |       dd
    """)

    assert flows(trace, "cudaMemcpyAsync") == [
        ("launch", "cudaMemcpyAsync", 20, "Memcpy DtoH (Device -> Pageable)", 60),
        ("wait", "Memcpy DtoH (Device -> Pageable)", 80, "cudaMemcpyAsync", 100),
    ]


def test_records_of_waits_tell_the_stream_that_was_waited_for() -> None:
    trace = sketch("""
        s = cudaStreamSynchronize; correlation = 90
        r = Stream Sync; correlation = 90; stream = 8
        call 1 | k m sssss
        gpu 7  |   kkkkk
        gpu 8  |     mm
        sync 8 |     rrrrr
    """)

    assert flows(trace, "cudaStreamSynchronize") == [("wait", "m", 60, "cudaStreamSynchronize", 90)]
    assert flows(trace, "Stream Sync") == [("wait", "m", 60, "Stream Sync", 90)]


def test_a_stream_that_waits_for_an_event_waits_for_the_work_before_its_record() -> None:
    trace = sketch("""
        e = cudaEventRecord; correlation = 80
        w = cudaStreamWaitEvent; correlation = 90
        r = Stream Wait Event; correlation = 90; stream = 8; waits_on_stream = 7; recorded_by = 80
        call 1 | keownm
        gpu 7  |  kkkkk oo
        gpu 8  |           nn
        gpu 8  |             m
        sync 8 |    r
    """)
    found = [("wait", "k", 60, "n", 100)]

    assert flows(trace, "Stream Wait Event") == flows(trace, "cudaStreamWaitEvent") == found
    for name in "kn":
        assert found[0] in flows_of_work(trace, name)
    for name in "om":
        assert {flow for flow, *_ in flows_of_work(trace, name)} == {"launch"}


def test_flows_are_at_most_as_many_as_pixels_of_a_kind() -> None:
    trace = sketch("""
        k = kernel; launched_by = g
        l = longer; launched_by = g
        call 1 | g
        gpu 7  |  k ll k k lll k
    """)
    table = timeline(trace, selected=0, pixels=2).filter(pl.col("kind") == "flow")

    assert trace.slices["name"].cast(pl.String).gather(table["to"]).to_list() == ["longer"] * 2


def test_tracks_are_listed_from_the_top_with_how_many_rows_they_need() -> None:
    trace = sketch("""
        n = note
        gpu 8    |    k
        gpu 7    |  aaaa
        gpu 7    |   bbbb
        note 7   |  nnnnn
        cpu 2    |     o
        cpu 1    |  aaaaa
        call 1   |   k
        python 1 | ffffff
    """)
    table = timeline(trace, what="tracks").filter(pl.col("kind") == "track")

    assert table.select("name", "category", "rows", "count", "start").rows() == [
        ("thread 1", "python", 1, 1, 0),
        ("thread 1", "host", 2, 2, 10 * US),
        ("thread 2", "host", 1, 1, 40 * US),
        ("stream 7", "device annotation", 1, 1, 10 * US),
        ("stream 7", "device", 2, 2, 10 * US),
        ("stream 8", "device", 1, 1, 30 * US),
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pixels": 0}, "`pixels` is `0`"),
        ({"depth": -1}, "`depth` is `-1`"),
        ({"start": 5, "end": 5}, "`end` is `5`, which is not after"),
        ({"end": 2**63}, "is not a time range"),
        ({"tracks": "0,gpu"}, "`tracks` has `gpu`"),
        ({"selected": 1}, "`selected` is `1`, which is no slice"),
    ],
)
def test_what_cannot_be_shown_is_one_sentence(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        timeline(sketch("cpu 1 | a"), **options)


def test_what_is_kept_of_a_trace_goes_with_it() -> None:
    trace = sketch("cpu 1 | a")
    timeline(trace, selected=0)
    alive = weakref.ref(trace)
    del trace
    gc.collect()

    assert alive() is None


# What holds of any trace, however odd: overlaps at all depths, no length, no end, no order in time.

TEXTS = ("a", "b", "c")
SLICES = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(0, 2),
        st.integers(0, 80),
        st.none() | st.integers(0, 30),
        st.sampled_from(TEXTS),
        st.sampled_from(TEXTS),
    ),
    max_size=30,
)


def traced(rows: list[tuple[Any, ...]]) -> Trace:
    columns = ("track", "depth", "start", "duration", "name", "category")
    told = dict(zip(columns, zip(*rows, strict=True), strict=True)) if rows else {}
    slices = pl.DataFrame(
        {
            column.name: pl.Series(list(told.get(column.name, [None] * len(rows)))).cast(
                column.dtype
            )
            for column in schema.SLICES.columns
        }
    ).with_columns(id=pl.int_range(pl.len(), dtype=pl.UInt32))
    tracks = pl.DataFrame(
        [(n, "other", n, "1", str(n), None, None, None, None) for n in range(3)],
        schema=schema.TRACKS.dtypes,
        orient="row",
    )
    return Trace(slices=slices, tracks=tracks)


def lanes(trace: Trace) -> Iterator[tuple[tuple[int, int], list[dict[str, Any]]]]:
    """The slices of each lane, in order."""
    index = slice_lanes(trace)
    slices = trace.slices.rows(named=True)
    for lane, (low, high) in enumerate(pairwise(index.lanes.bounds.tolist())):
        place = index.lanes.place[low:high].tolist()
        yield (int(index.lanes.track[lane]), int(index.lanes.row[lane])), [slices[n] for n in place]


def end_of(slice_: dict[str, Any]) -> int:
    return int(slice_["start"] + (slice_["duration"] or 0))


@given(SLICES)
def test_every_slice_has_a_lane_on_which_it_overlaps_no_other(rows: list[tuple[Any, ...]]) -> None:
    trace = traced(rows)
    found = dict(lanes(trace))

    assert sorted(slice_["id"] for lane in found.values() for slice_ in lane) == list(
        range(len(rows))
    )
    for (track, _), lane in found.items():
        assert {slice_["track"] for slice_ in lane} == {track}
        assert len({slice_["depth"] for slice_ in lane}) == 1
        assert all(end_of(one) <= other["start"] for one, other in pairwise(lane))


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), min_size=1, max_size=30))
def test_there_are_as_many_lanes_as_intervals_are_open_at_once(
    pairs: list[tuple[int, int]],
) -> None:
    pairs.sort(key=lambda pair: (pair[0], sum(pair)))
    start = np.array([begin for begin, _ in pairs])
    end = start + np.array([length for _, length in pairs])
    most = max(int(((start <= now) & (now < end)).sum()) for now in start)

    assert lanes_without_overlap(start, end).max() + 1 == most


WINDOWS = st.tuples(st.integers(0, 90), st.integers(1, 120), st.integers(1, 130))


@given(SLICES, WINDOWS)
def test_a_tile_is_what_merging_one_by_one_gives(
    rows: list[tuple[Any, ...]], window: tuple[int, int, int]
) -> None:
    trace = traced(rows)
    start, span, pixels = window
    table = timeline(trace, start=start, end=start + span, pixels=pixels, tracks="other")
    pixel = -(-span // pixels)
    first, last = start // pixel * pixel, -(-(start + span) // pixel) * pixel

    expected = [
        (*lane, *told)
        for lane, slices in lanes(trace)
        for told in merged([s for s in slices if is_in(s, first, last)], pixel)
    ]
    columns = ("track", "row", "start", "duration", "count", "busy", "name", "id")
    assert table.select(columns).rows() == expected
    for _, rows_of_lane in groupby(table.iter_rows(named=True), lambda r: (r["track"], r["row"])):
        shown = list(rows_of_lane)
        assert len(shown) <= 2 * (pixels + 1) + 1
        assert all(end_of(one) <= other["start"] for one, other in pairwise(shown))


def is_in(slice_: dict[str, Any], first: int, last: int) -> bool:
    return bool(slice_["start"] < last and (end_of(slice_) > first or slice_["start"] >= first))


def merged(slices: list[dict[str, Any]], pixel: int) -> Iterator[tuple[Any, ...]]:
    """Rows of a lane, as the view's documentation tells."""

    def key(slice_: dict[str, Any]) -> tuple[int, int]:
        is_wide = (slice_["duration"] or 0) >= pixel
        return slice_["start"] // pixel, slice_["id"] if is_wide else -1

    for _, group in groupby(slices, key):
        many = list(group)
        begin, end = many[0]["start"], end_of(many[-1])
        busy = sum(slice_["duration"] or 0 for slice_ in many)
        name = max(many, key=lambda slice_: slice_["duration"] or 0)["name"]
        if len(many) == 1:
            yield begin, many[0]["duration"], 1, busy, name, many[0]["id"]
        else:
            yield begin, end - begin, len(many), busy, name, None


@given(SLICES)
def test_the_category_of_a_merged_row_is_that_of_most_time(rows: list[tuple[Any, ...]]) -> None:
    trace = traced(rows)
    table = timeline(trace, start=0, end=200, pixels=1, tracks="other")
    told = {(r["track"], r["row"]): r["category"] for r in table.iter_rows(named=True)}

    for lane, slices in lanes(trace):
        times = {
            text: sum(s["duration"] or 0 for s in slices if s["category"] == text)
            for text in {s["category"] for s in slices}
        }
        assert times[told[lane]] == max(times.values())


@pytest.mark.traces
def test_no_slice_is_left_out_of_any_trace(real: "ReadReal", real_names: list[str]) -> None:
    for name in real_names:
        trace = real(name)
        for pixels in (1, 700, 10**9):
            table = timeline(trace, pixels=pixels)
            drawn = table.filter(pl.col("kind").is_in(["slice", "merged"]))
            assert drawn["count"].sum() == trace.slices.height, name
            assert (drawn["busy"] <= drawn["duration"].fill_null(0)).all(), name
            counted = table.filter(pl.col("kind") == "counter")
            assert (counted["low"] <= counted["value"]).all(), name
            assert (counted["value"] <= counted["high"]).all(), name
        listed = timeline(trace, what="tracks").filter(pl.col("kind") == "track")
        assert listed["track"].sort().to_list() == trace.tracks["id"].to_list(), name
        assert listed["count"].sum() == trace.slices.height, name


@pytest.mark.sweep
@pytest.mark.traces
def test_flows_of_any_trace_join_slices_at_their_times(
    real: "ReadReal", real_names: list[str]
) -> None:
    seen = set()
    for name in real_names:
        trace = real(name)
        begin = trace.slices["start"].to_numpy()
        end = begin + trace.slices["duration"].to_numpy()
        for selected in range(0, trace.slices.height, max(trace.slices.height // 20, 1)):
            table = timeline(trace, selected=selected, end=1).filter(pl.col("kind") == "flow")
            for flow, id_, start, to, time in table.select(
                "name", "id", "start", "to", "to_time"
            ).iter_rows():
                seen.add(flow)
                assert start == (end if flow == "wait" else begin)[id_], name
                assert time in (begin[to], end[to]), name
            mine = table.filter(
                (pl.col("name").cast(pl.String) == "launch") & (pl.col("to") == selected)
            )
            assert mine["id"].to_list() == [
                n for n in [trace.slices["launch"][selected]] if n is not None
            ]
    assert seen >= {"launch", "backward"}


@pytest.mark.traces
def test_kernels_that_overlap_are_all_seen(real: "ReadReal") -> None:
    table = timeline(real("b200-2025-vllm-eager"), pixels=10**9, tracks="device")
    rows = table.filter(pl.col("kind") == "slice").group_by("row").len().sort("row")

    assert rows.rows() == [(0, 891), (1, 38)]  # 929 kernels, 74 of which begin within another


@pytest.mark.traces
def test_tile_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    golden(timeline, timeline(real("h100-2025-vit"), pixels=4, tracks="3,5,counters", depth=3))


@pytest.mark.traces
def test_tracks_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    golden(timeline, timeline(real("mi300-2025-resnet-ddp-recompute"), what="tracks"))


@pytest.mark.traces
def test_flows_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    trace = real("a100-2023-alexnet")
    calls = trace.slices.filter(pl.col("name").cast(pl.String) == "cudaStreamWaitEvent")["id"]
    tables = [timeline(trace, selected=call, tracks="other") for call in calls]
    golden(timeline, pl.concat(tables).filter(pl.col("kind") == "flow"))
