"""Section D of the catalogue: time."""

from collections.abc import Callable
from random import Random
from typing import Any, Final

import polars as pl
from tests.ingest.rough.case import Event, N, annotation, case, document, events, kernel, op
from tests.ingest.rough.looking import added, advice_on, changed, figures, row

from selftime.trace import Trace

EPOCH_US: Final = 1_712_000_000_000_000
"""April 2024 in us since the epoch: beyond 2**53 when in ns."""

HELD_BY: Final = {"35": "test_job.py::test_clocks_of_several_hosts_are_brought_together"}


def total(trace: Trace, of: str = "op") -> int:
    """Self time of the slices whose names begin so."""
    named = trace.slices.filter(pl.col("name").cast(pl.String).str.starts_with(of))
    return int(named["self"].sum())


def later(event: Event, us: float, ids: int = 0) -> Event:
    """An event of another window: at another time, with numbers that go on."""
    told = {
        key: value + ids if key in {"correlation", "External id"} else value
        for key, value in event["args"].items()
    }
    return {**event, "ts": event["ts"] + us, "args": told}


# 27 Overlapping slices


def _are_kept(trace: Trace) -> None:
    assert row(trace, "kernel40")["duration"] == 6_000
    assert total(trace, "kernel") == 12 * 6_000 + 1_000
    rows = trace.view("timeline").filter(pl.col("name").is_in(["kernel3", "kernel40"]))
    assert rows["row"].n_unique() == 2


@case("27a", "accept", sound=N + 1, check=_are_kept)
def kernels_overlap(_: Random) -> bytes:
    return added(kernel(40, ts=1035, args={"device": 0, "stream": 7}))


def _are_both_kept(trace: Trace) -> None:
    both = trace.slices.filter(pl.col("name") == "op3")
    assert both["duration"].to_list() == [5_000, 5_000]
    assert both["parent"].to_list()[1] == both["id"][0]
    assert both["self"].to_list() == [0, 3_000]


@case("27b", "accept", sound=N + 1, check=_are_both_kept)
def same_begin_and_end(_: Random) -> bytes:
    return added(op(3))


def _is_child_of(parent: str) -> Callable[[Trace], None]:
    def check(trace: Trace) -> None:
        assert trace.slices["name"][row(trace, "child")["parent"]] == parent
        assert row(trace, parent)["self"] >= 0

    return check


@case("27c", "accept", sound=N + 1, check=_is_child_of("op3"))
def child_first(_: Random) -> bytes:
    return document([op(40, name="child", ts=1030, dur=1), *events()])


def _is_clipped(trace: Trace) -> None:
    _is_child_of("op3")(trace)
    assert row(trace, "child")["duration"] == 500
    written = trace.clipped.filter(pl.col("id") == row(trace, "child")["id"])
    assert written["duration"].to_list() == [1_250]


@case("27d", "accept", sound=N + 1, check=_is_clipped)
def child_past_its_parent(_: Random) -> bytes:
    return added(op(40, name="child", ts=1034.5, dur=1.25))


# 28 Impossible durations


def _is_a_suspect(trace: Trace) -> None:
    health = trace.view("health").filter(pl.col("check").is_in(["durations", "ends"]))
    assert str(row(trace, "kernel3")["id"]) in " ".join(health["slices"].drop_nulls()).split()
    idle = trace.view("idle")
    assert idle["duration"].sum() > 0, "the device is not busy for all of it"
    assert figures(trace)["trace recorded"] is not None


def lasting(us: float) -> bytes:
    return changed({"dur": us}, name="kernel3")


IMPOSSIBLE: Final = "cannot have lasted so long"


@case("28a", "recover", IMPOSSIBLE, sound=N, check=_is_a_suspect)
def seconds(_: Random) -> bytes:
    return lasting(7e6)


@case("28a", "recover", IMPOSSIBLE, sound=N, check=_is_a_suspect)
def days(_: Random) -> bytes:
    return lasting(3 * 86_400e6)


@case("28b", "recover", IMPOSSIBLE, sound=N, check=_is_a_suspect)
def longer_than_the_capture(_: Random) -> bytes:
    return lasting(900)


@case("28c", "recover", IMPOSSIBLE, sound=N, check=_is_a_suspect)
def wrapped_at_32_bits(_: Random) -> bytes:
    return lasting(2**32 - 3)


@case("28c", "recover", "events without an end: left out of totals", sound=N, check=_is_a_suspect)
def wrapped_at_64_bits(_: Random) -> bytes:
    return lasting(2**64 - 3)


# 29 Zero and negative


def _is_unended(trace: Trace) -> None:
    assert row(trace)["duration"] is None
    for view in ("operators", "kernels", "steps", "overview"):
        _has_no_negative(trace.view(view))


def _has_no_negative(table: pl.DataFrame) -> None:
    times = [name for name in table.columns if "time" in name or name in {"duration", "self"}]
    assert all((table[name].drop_nulls() >= 0).all() for name in times)


@case("29a", "recover", "events without an end: left out of totals", sound=N, check=_is_unended)
def negative(_: Random) -> bytes:
    return changed({"dur": -40})


@case("29a", "recover", "events without an end: left out of totals", sound=N, check=_is_unended)
def minus_one(_: Random) -> bytes:
    return changed({"dur": -1})


@case("29b", "accept", "of device slices have a duration of zero", sound=N)
def of_no_length(_: Random) -> bytes:
    return changed({"dur": 0}, name="kernel3")


def _lasts_as_long(trace: Trace) -> None:
    recorded = figures(trace)["trace recorded"]
    assert recorded is not None
    assert recorded < 1e6
    assert row(trace)["duration"] is None


@case("29c", "recover", "no time: kept, but not in totals", sound=N, check=_lasts_as_long)
def a_time_of_zero(_: Random) -> bytes:
    return changed({"ts": 0}, made=[later(e, 3e12) for e in events()])


def _withholds_device_figures(trace: Trace) -> None:
    assert trace.view("idle").is_empty()
    told = figures(trace)
    device = ("steps busy", "steps idle launches", "execution kernel", "device kernel busy")
    assert all(told.get(metric) is None for metric in device), told
    advice = advice_on(trace)
    assert advice["health"]["verdict"] == "unusable"
    assert not advice["findings"]
    assert not advice["checked"]
    assert all("have no time" in unknown["needs"] for unknown in advice["unknown"])


@case("29d", "limit", "12 device slices (100.0 %) have no time", sound=N,
      check=_withholds_device_figures)  # fmt: skip
def no_device_times(_: Random) -> bytes:
    return document([{**e, "ts": 0, "dur": 0} if e["cat"] == "kernel" else e for e in events()])


def _gives_no_sure_advice(trace: Trace) -> None:
    advice = advice_on(trace)
    assert advice["health"]["verdict"] != "good"
    assert not [found for found in advice["findings"] if found["confidence"] == "high"]


@case("29d", "limit", "2 device slices (16.7 %) have no time", sound=N, check=_gives_no_sure_advice)
def few_device_times_lost(_: Random) -> bytes:
    lost = {"kernel3", "kernel7"}
    return document([{**e, "ts": 0, "dur": 0} if e["name"] in lost else e for e in events()])


# 30 Annotations without a real end


def with_steps(*more: Event) -> bytes:
    """Four steps of ten operators each, within the recorder's own span."""
    span = {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans",
            "tid": "PyTorch Profiler", "ts": 995, "dur": 440, "args": {}}  # fmt: skip
    return document([*events(124), span, *more])


def _are_four_steps(trace: Trace) -> None:
    steps = trace.view("steps")
    assert steps["step"].to_list() == [0, 1, 2, 3]
    assert steps["host_time"].to_list() == [99_000] * 4


@case("30a", "recover", "events without an end: left out", sound=126, check=_are_four_steps)
def unfinished(_: Random) -> bytes:
    return with_steps(annotation(9, name="forward", ts=1050, dur=365, args={"finished": False}))


def _is_not_counted(trace: Trace) -> None:
    steps = trace.view("steps").filter("counted")
    assert steps["step"].to_list() == [1, 2, 3]


@case("30a", "recover", "its end was not recorded", sound=126, check=_is_not_counted)
def unfinished_step(_: Random) -> bytes:
    return with_steps(annotation(4, ts=1400, dur=15, args={"finished": False}))


@case("30b", "accept", sound=126, check=_are_four_steps)
def covers_all(_: Random) -> bytes:
    return with_steps(annotation(9, name="training", ts=996, dur=438))


# 31 The zero of time


def since(zero: int, **header: Any) -> bytes:
    """Times that no double holds to the nanosecond."""
    made = [{**e, "ts": f"<{zero + e['ts']}.007>"} for e in events()]
    return document(made, **header).replace(b'"<', b"").replace(b'>"', b"")


def _is_exact(trace: Trace) -> None:
    assert trace.origin == EPOCH_US * 1000 + 1_000_007
    assert row(trace, "kernel3")["start"] - row(trace)["start"] == 4_000


@case("31a", "accept", sound=N, check=_is_exact)
def since_the_epoch_with_a_base(_: Random) -> bytes:
    return since(EPOCH_US, baseTimeNanoseconds=1_711_961_000 * 10**9)


@case("31a", "accept", sound=N, check=_is_exact)
def since_a_base(_: Random) -> bytes:
    return since(39_000 * 10**6, baseTimeNanoseconds=EPOCH_US * 1000 - 39_000 * 10**9)


@case("31b", "accept", sound=N, check=_is_exact)
def since_the_epoch(_: Random) -> bytes:
    return since(EPOCH_US)


def _is_relative(trace: Trace) -> None:
    assert trace.origin is None


@case("31c", "limit", "relative times only", sound=N, check=_is_relative)
def since_the_start(_: Random) -> bytes:
    return since(3 * 10**9, distributedInfo={"rank": 0, "world_size": 2})


def _are_two_windows(trace: Trace) -> None:
    assert row(trace, "again3")["start"] - row(trace)["start"] > 200_000
    assert total(trace, "op") == total(trace, "again")
    launched = trace.slices.filter(pl.col("launch").is_not_null())
    begun = trace.slices["start"].gather(launched["launch"])
    assert (launched["start"] - begun).unique().to_list() == [3_000]
    assert trace.view("idle")["duration"].max() < 100_000  # type: ignore[operator]  # integers


def restarted(by: float) -> bytes:
    """A window and another one, whose clock lies so many us off."""
    first = [later(e, 1e6) for e in events()]
    second = [
        {**later(e, 1e6 + by, 5000), "name": e["name"].replace("op", "again").replace("#", "#1")}
        for e in events()
    ]
    return document(first + second)


WENT_BACK: Final = "the clock went back"


@case("31d", "recover", WENT_BACK, sound=2 * N, check=_are_two_windows)
def restart_at_zero(_: Random) -> bytes:
    return restarted(-1e6 - 1000)


# 32 `displayTimeUnit`


def _is_as_ever(trace: Trace) -> None:
    assert row(trace)["duration"] == 5_000
    assert row(trace)["start"] == 30_000


@case("32", "accept", sound=N, check=_is_as_ever)
def unit_of_display_ns(_: Random) -> bytes:
    return document(displayTimeUnit="ns")


@case("32", "accept", sound=N, check=_is_as_ever)
def unit_of_display_ms(_: Random) -> bytes:
    return document(displayTimeUnit="ms")


# 33 Clocks of host and device


def _has_no_negative_delay(trace: Trace) -> None:
    early = row(trace, "kernel3")
    assert early["launch"] is not None
    _has_no_negative(trace.view("launches"))
    flows = trace.view("timeline", selected=early["id"])
    assert "flow" in flows["kind"].to_list()


@case("33a", "limit", "1 device slices start before their launch", sound=N,
      check=_has_no_negative_delay)  # fmt: skip
def work_before_its_launch(_: Random) -> bytes:
    return changed({"ts": 1028, "dur": 3}, name="kernel3")


def _is_nested(trace: Trace) -> None:
    call = trace.slices.filter(pl.col("category") == "cuda_runtime").row(3, named=True)
    assert trace.slices["name"][call["parent"]] == "op3"


@case("33b", "accept", sound=N, check=_is_nested)
def calls_before_their_operator(_: Random) -> bytes:
    made = events()
    for number, call in enumerate(e for e in made if e["cat"] == "cuda_runtime"):
        call["ts"] = 999.7 + 10 * number
    return document(made)


def _withholds_advice(trace: Trace) -> None:
    assert row(trace, "kernel3")["launch"] is not None
    advice = advice_on(trace)
    assert advice["health"]["verdict"] == "unusable"
    assert not advice["findings"]
    assert len(advice["unknown"]) > 10


def shifted(host: float = 0, device: float = 0) -> bytes:
    return document(
        [{**e, "ts": e["ts"] + (device if e["cat"] == "kernel" else host)} for e in events()]
    )


@case("33c", "limit", "lie about 5.00 s apart", sound=N, check=_withholds_advice)
def device_ahead(_: Random) -> bytes:
    return shifted(device=5e6)


@case("33c", "limit", "start before their launch, by about 5.00 s", sound=N,
      check=_withholds_advice)  # fmt: skip
def device_behind(_: Random) -> bytes:
    return shifted(host=5e6)


# 34 Order and windows


def _is_in_order(trace: Trace) -> None:
    assert trace.slices["start"].is_sorted()
    assert total(trace) == 13 * 3_000
    assert trace.slices["launch"].count() == 12


@case("34a", "accept", sound=N, check=_is_in_order)
def unsorted(dice: Random) -> bytes:
    made = events()
    dice.shuffle(made)
    return document(made)


@case("34b", "accept", sound=N, check=_is_in_order)
def device_after_host(_: Random) -> bytes:
    return document(sorted(events(), key=lambda e: str(e["cat"] == "kernel")))


HOLE_US: Final = 5e6


def _is_no_idle_hole(trace: Trace) -> None:
    assert trace.view("idle")["duration"].max() < 100_000  # type: ignore[operator]  # integers
    told = figures(trace)
    assert told["steps busy"] > 0.3  # type: ignore[operator]  # a number
    assert told["steps step time, median"] < 200_000  # type: ignore[operator]  # a number
    assert trace.view("steps")["host_time"].max() < 200_000  # type: ignore[operator]  # integers


@case("34c", "accept", sound=248, check=_is_no_idle_hole)
def windows_with_a_hole(_: Random) -> bytes:
    again = [{**later(e, HOLE_US, 5000), "name": e["name"].replace("#", "#1")} for e in events(124)]
    return document([*events(124), *again])


@case("34d", "limit", WENT_BACK, sound=2 * N, check=_are_two_windows)
def clock_set_back(_: Random) -> bytes:
    return restarted(-50_000)


@case("34d", "limit", "the host's clock was set", sound=N, check=_withholds_advice)
def clock_of_the_host_set_on(_: Random) -> bytes:
    return document(
        [{**e, "ts": e["ts"] + 5e6 * (e["cat"] != "kernel" and e["ts"] > 1060)} for e in events()]
    )
