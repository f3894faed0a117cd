"""Device time of lines, kernels, operators and streams, wherever it is stated."""

from typing import Final

import polars as pl
from tests.views.agreement import Asked, Sides, host_rows, summed

from selftime import names
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.trace import Trace


def _work(ask: Asked, by: str) -> pl.DataFrame:
    """Kernels, copies and fills by what is given, in the columns of both views."""
    columns = ("device_time", "device_slices")
    kernels = ask("kernels", by=by).rename({"total": columns[0], "count": columns[1]})
    copies = ask("copies", by=by).rename({"time": columns[0], "count": columns[1]})
    keys = {"line": SOURCE_SITE_COLUMNS, "operator": ("operator",), "stream": ("device", "stream")}[
        by
    ]
    return pl.concat([one.select(*keys, *columns) for one in (kernels, copies)])


def _device(table: pl.DataFrame) -> pl.DataFrame:
    return table.filter(pl.col("kind").is_in(["kernel", "copy"]))


def device_time_of_a_line(ask: Asked) -> Sides:
    """`lines` is what `kernels` and `copies` by line add up to."""
    columns = ("device_time", "device_slices")
    yield (
        "kernels + copies",
        summed(ask("lines"), SOURCE_SITE_COLUMNS, *columns),
        summed(_work(ask, "line"), SOURCE_SITE_COLUMNS, *columns),
    )


def device_time_launched_from_a_line(ask: Asked) -> Sides:
    """`lines` is `launches` by line; work that no recorded call launched has no line."""
    lines = ask("lines").filter(pl.col("file").is_not_null())
    launches = ask("launches", by="line").filter(pl.col("file").is_not_null())
    launches = launches.rename({"work": "device_slices"})
    columns = ("device_time", "device_slices")
    yield (
        "launches",
        summed(lines, SOURCE_SITE_COLUMNS, *columns),
        summed(launches, SOURCE_SITE_COLUMNS, *columns),
    )


def device_time_of_an_operators_line(ask: Asked) -> Sides:
    """`operators` by line is `lines`, but for what an operator launched from a line within it."""
    own, called = _lines_of_operators(ask.trace)
    moved = summed(own, SOURCE_SITE_COLUMNS, "time"), summed(called, SOURCE_SITE_COLUMNS, "time")
    lines = ask("lines").filter(pl.col("file").is_not_null())
    stated = host_rows(ask("operators", by="line")).filter(pl.col("file").is_not_null())
    one, other = (
        summed(lines, SOURCE_SITE_COLUMNS, "device_time"),
        summed(stated, SOURCE_SITE_COLUMNS, "self_device_time_total"),
    )
    for key, (time,) in moved[0].items():
        one[key] = (one.get(key, (0,))[0] + time,)
    for key, (time,) in moved[1].items():
        one[key] = (one[key][0] - time,)
    yield "operators", {key: time for key, time in one.items() if any(time)}, other


def _lines_of_operators(trace: Trace) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Work whose operator is on another line than its launch: by either line, where it is known."""
    work = trace.device_args.select("id", "operator").drop_nulls()
    slices = trace.slices.select("launch", "duration")[work["id"]]
    by = work.hstack(slices).filter(pl.col("launch").is_not_null())
    own, called = (source_sites_of_slices(trace, by[name]) for name in ("operator", "launch"))
    same = pl.DataFrame([own[name].eq_missing(called[name]) for name in SOURCE_SITE_COLUMNS])
    differs = ~same.select(pl.all_horizontal(pl.all())).to_series()
    time = by["duration"].alias("time")
    known = (table.with_columns(time).filter(differs) for table in (own, called))
    first, second = (table.filter(pl.col("file").is_not_null()) for table in known)
    return first, second


def device_time_of_all(ask: Asked) -> Sides:
    """All rows of each view add up to the same device time."""
    whole = ask("lines")["device_time"].sum()
    yield "operators", whole, _device(ask("operators"))["self_device_time_total"].sum()
    yield "flame", whole, ask("flame", metric="device")["self_time"].sum()
    yield "flame by module", whole, ask("flame", metric="device", by="module")["self_time"].sum()
    if ask("modules").height:
        yield "modules", whole, ask("modules")["device_time"].sum()
        yield "classes", whole, ask("modules", by="class")["device_time"].sum()
    work = ask("occurrences", by="name").filter(pl.col("kind").is_in(["kernel", "copy"]))
    yield "occurrences", whole, work["duration"].sum()


def device_time_of_a_kernel(ask: Asked) -> Sides:
    """`operators`, `kernels` and `occurrences` state each kernel's count and time alike."""
    kernels = summed(ask("kernels"), ("name",), "total", "count")
    device = ask("operators").filter(pl.col("kind") == "kernel")
    of_operators = summed(
        device.drop_nulls("device_time"), ("name",), "self_device_time_total", "count"
    )
    yield "operators", kernels, of_operators
    listed = ask("occurrences", kind="kernel", by="name")
    yield "occurrences", kernels, summed(listed, ("name",), "duration", "count")
    inside = ask("selection").rename({"what": "name"}).filter(_is_kernel())
    yield "selection", kernels, summed(inside, ("name",), "total", "count")


def _is_kernel() -> pl.Expr:
    """Whether a row's category is that of kernels."""
    kernels = [
        category
        for category in names.DEVICE_WORK_CATEGORIES
        if category not in names.COPY_CATEGORIES
    ]
    return pl.col("category").cast(pl.String).is_in(kernels)


def device_time_of_an_operator(ask: Asked) -> Sides:
    """`kernels` and `copies` by operator are the self device time of `operators`."""
    work = _work(ask, "operator").filter(pl.col("operator").is_not_null())
    steps = pl.col("operator").map_elements(_as_torch, return_dtype=pl.String)
    work = work.with_columns(steps)
    host = host_rows(ask("operators")).filter(pl.col("kind") != "call").rename({"name": "operator"})
    yield (
        "operators",
        summed(work, ("operator",), "device_time"),
        summed(host, ("operator",), "self_device_time_total"),
    )
    calls = host_rows(ask("operators")).filter(pl.col("kind") == "call")
    called = int(work["device_time"].sum()) + int(calls["self_device_time_total"].sum())
    yield "launches", int(ask("launches")["device_time"].sum()) + _unlaunched(ask.trace), called


def _unlaunched(trace: Trace) -> int:
    """Device time of work with an operator and without a recorded call."""
    told = trace.device_args.select("id", "operator").drop_nulls()
    work = trace.slices.select("launch", "duration")[told["id"]]
    return int(work.filter(pl.col("launch").is_null())["duration"].sum())


def _as_torch(name: str) -> str:
    return name if names.profiler_step_number(name) is None else "ProfilerStep*"


def work_of_a_stream(ask: Asked) -> Sides:
    """`kernels` and `copies` name a device and stream alike, and `occurrences` does."""
    work = summed(_work(ask, "stream"), ("device", "stream"), "device_time", "device_slices")
    listed = ask("occurrences").filter(
        pl.col("kind").is_in(["kernel", "copy"]) & pl.col("duration").is_not_null()
    )
    listed = listed.with_columns(device_slices=1)
    yield "occurrences", work, summed(listed, ("device", "stream"), "duration", "device_slices")


def sums_by_other_keys(ask: Asked) -> Sides:
    """What rows are told apart by changes no sum."""
    for view, columns, ways in (
        ("kernels", ("count", "total"), ("launch", "operator", "line", "class", "stream", "graph")),
        (
            "copies",
            ("count", "bytes", "time", "waited", "without_bytes"),
            ("stream", "size", "operator", "line", "copy"),
        ),
        (
            "launches",
            ("count", "host_time", "exposed", "work", "device_time"),
            ("operator", "line", "kernel", "stream", "launch"),
        ),
        (
            "collectives",
            ("count", "bytes", "time", "exposed", "without_bytes"),
            ("group", "size", "step", "line", "collective"),
        ),
        ("critical_path", ("time", "inferred", "count"), ("name", "line", "step", "segment")),
        ("job_path", ("time", "count"), ("kind", "line", "section")),
        ("syncs", ("wait", "idle", "idle_after"), ("line", "operator")),
        ("occurrences", ("duration", "self"), ("duration", "line", "thread", "step")),
        ("modules", ("device_time", "self_cpu_time", "calls"), ("class",)),
    ):
        first = {"occurrences": "name"}.get(view)
        whole = ask(view) if first is None else ask(view, by=first)
        for by in ways:
            yield (
                f"{view} by {by}",
                tuple(whole[c].sum() for c in columns),
                tuple(ask(view, by=by)[c].sum() for c in columns),
            )


def device_work_in_counted_steps(ask: Asked) -> Sides:
    """With `counted`, `lines` is still what `kernels` and `copies` add up to."""
    lines = ask("lines", counted=True)
    kernels, copies = ask("kernels", counted=True), ask("copies", counted=True)
    yield (
        "time",
        lines["device_time"].sum(),
        int(kernels["total"].sum()) + int(copies["time"].sum()),
    )
    yield (
        "count",
        lines["device_slices"].sum(),
        int(kernels["count"].sum()) + int(copies["count"].sum()),
    )


def time_of_one_name(ask: Asked) -> Sides:
    """`matches` and `slice` state what `kernels` states of the longest kernel."""
    for row in ask("kernels", top=1).iter_rows(named=True):
        found = ask("matches", text=row["name"]).filter(_is_kernel())
        found = found.filter(pl.col("name") == row["name"])
        yield "matches", (row["total"], row["count"]), (found["total"][0], found["count"][0])
        told = dict(ask("slice", id=row["longest"]).select("key", "value").rows())
        yield "slice", str(row["max"]), told.get("at most", told["duration"])


OF_DEVICES: Final = (
    device_time_of_a_line,
    device_time_launched_from_a_line,
    device_time_of_an_operators_line,
    device_time_of_all,
    device_time_of_a_kernel,
    device_time_of_an_operator,
    work_of_a_stream,
    sums_by_other_keys,
    device_work_in_counted_steps,
    time_of_one_name,
)
