"""Host time, and the times of steps, wherever they are stated."""

from typing import Final

import polars as pl
from tests.views.agreement import Asked, Sides, summed

from selftime import names
from selftime.analysis.call_tree.self_times import NAME_OF_ALL_PROFILER_STEPS
from selftime.analysis.ranks.lateness import STEP_TIME_PARTS
from selftime.compare.check.step_measures import measure_steps


def idle_time_of_a_device(ask: Asked) -> Sides:
    """`idle` by cause adds up to what `overlap` calls idle."""
    if ask("overlap")["idle"].null_count():
        return
    if not ask.trace.device_args.height:
        return
    yield (
        "overlap",
        summed(ask("idle", by="cause"), ("device",), "duration"),
        summed(ask("overlap"), ("device",), "idle"),
    )


def parts_of_a_step(ask: Asked) -> Sides:
    """Where one device works, `overlap` by step is what `steps` states."""
    overlap = ask("overlap", by="step")
    if overlap["device"].n_unique() != 1 or not ask.trace.device_args.height:
        return
    steps = ask("steps")
    names_of = {"time": "window", "kernel": "compute", "all_communication": "communication"}
    for one, other in names_of.items():
        if not steps[one].null_count():
            yield one, steps[one].to_list(), overlap[other].to_list()
    if not overlap["idle"].null_count():
        yield "busy", steps["busy"].to_list(), (overlap["window"] - overlap["idle"]).to_list()


def work_of_a_step(ask: Asked) -> Sides:
    """`steps` and `occurrences` count the same work whose launch is recorded."""
    steps = ask("steps").rename({"device_slices": "count"})
    work = ask("occurrences").filter(
        pl.col("kind").is_in(["kernel", "copy"]) & pl.col("launch").is_not_null()
    )
    work = work.drop_nulls("step").with_columns(count=1)
    yield "occurrences", summed(steps, ("step",), "count"), summed(work, ("step",), "count")


def average_step(ask: Asked) -> Sides:
    """`overview` has the mean, `ranks` too, and `critical_path` the sum of the steps that count."""
    steps = ask("steps")
    if not steps.height:
        return
    counted = steps.filter("counted") if steps["counted"].any() else steps
    figures = ask("overview").filter(pl.col("section") == "execution")
    told = dict(figures.select("metric", "value").rows())
    yield "time", counted["time"].mean(), told["average step"]
    for part in (*STEP_TIME_PARTS, "all_communication"):
        if (metric := part.replace("_", " ")) in told:
            yield part, counted[part].mean(), told[metric]
    for rank in ask("ranks").filter(pl.col("time").is_not_null()).iter_rows(named=True):
        for part in ("time", "host_time", "device_time", "kernel", "communication", "cpu", "other"):
            yield f"rank's {part}", counted[part].mean(), rank[part]
    yield "critical path", counted["time"].sum(), ask("critical_path")["time"].sum()
    yield "account", counted["time"].sum(), ask("account")["time"].sum()


def host_time_of_all(ask: Asked) -> Sides:
    """All rows of each view add up to the same host time."""
    whole = ask("lines")["self_cpu_time"].sum()
    yield "flame", whole, ask("flame", metric="host")["self_time"].sum()
    if ask("modules").height:
        yield "modules", whole, ask("modules")["self_cpu_time"].sum()
    if not ask.trace.frame_args.height:
        yield "operators", whole, ask("operators")["self_cpu_time_total"].sum()
    else:
        yield "operators", whole, ask("operators", python=True)["self_cpu_time_total"].sum()


def host_time_of_a_call(ask: Asked) -> Sides:
    """Calls that launched work take in `launches` what they take in `occurrences`."""
    each = ask("launches", by="launch").select(pl.col("longest").alias("id"), "host_time")
    listed = ask("occurrences", kind="call").select("id", "duration")
    both = each.join(listed, on="id", how="left")
    yield "occurrences", both["host_time"].to_list(), both["duration"].fill_null(0).to_list()


def host_time_of_an_annotation(ask: Asked) -> Sides:
    """`annotations` counts those of `occurrences` in counted steps; host time is by step."""
    found = ask("annotations")
    steps = max(int(ask("steps")["counted"].sum()), 1)
    listed = ask("occurrences", kind="annotation", by="name", counted=True)
    wanted = listed.filter(
        pl.col("name").cast(pl.String).is_in(found["name"].cast(pl.String).implode())
    )
    whole = found.with_columns(duration=(pl.col("host_time") * steps).round().cast(pl.Int64))
    one, other = (summed(table, ("name",), "count", "duration") for table in (whole, wanted))
    yield "occurrences", {k: v for k, v in one.items() if k in other}, other


def waits_for_copies(ask: Asked) -> Sides:
    """What `copies` waited is the waits for copies that `syncs` lists."""
    held = ask("syncs").filter(pl.col("kind").is_in(["copy_to_host", "copy_to_device"]))
    yield "syncs", ask("copies")["waited"].sum(), held["wait"].sum()


def host_time_of_an_operator(ask: Asked) -> Sides:
    """`operators` and `occurrences` state the same self time of each operator."""
    rows = ask("operators").filter(pl.col("kind") == "operator")
    listed = ask("occurrences", kind="operator", by="name").cast({"name": pl.String})
    every = listed["name"].unique().to_list()
    recorder = [name for name in every if names.is_recorder_operator(name)]
    steps = {
        name: NAME_OF_ALL_PROFILER_STEPS
        for name in every
        if names.profiler_step_number(name) is not None
    }
    listed = listed.filter(~pl.col("name").is_in(recorder))
    listed = listed.with_columns(pl.col("name").replace(steps))
    stated = summed(rows, ("name",), "self_cpu_time_total")
    yield "occurrences", stated, summed(listed, ("name",), "self")


def counts_in_counted_steps(ask: Asked) -> Sides:
    """What `compare` measures of the steps that count is what views count with `counted`."""
    found = measure_steps(ask.trace)
    for measure, view, column in (
        ("launches", "launches", "count"),
        ("copies", "copies", "count"),
        ("copied_bytes", "copies", "bytes"),
    ):
        if measure in found:
            yield measure, int(found[measure].sum()), ask(view, counted=True)[column].sum()
    if "syncs" in found:
        yield "syncs", int(found["syncs"].sum()), ask("syncs", counted=True).height


def busy_time_of_a_device(ask: Asked) -> Sides:
    """Where one device works, `overview` states the share that `steps` gives."""
    figures = ask("overview").filter((pl.col("section") == "device") & (pl.col("metric") == "busy"))
    counted = ask("steps").filter("counted")
    if figures.height == 1 and figures["value"][0] is not None and counted.height:
        share = int(counted["busy"].sum()) / int(counted["time"].sum())
        yield "overview", share, figures["value"][0]


OF_STEPS: Final = (
    idle_time_of_a_device,
    parts_of_a_step,
    work_of_a_step,
    average_step,
    host_time_of_all,
    host_time_of_a_call,
    host_time_of_an_annotation,
    waits_for_copies,
    host_time_of_an_operator,
    counts_in_counted_steps,
    busy_time_of_a_device,
)
