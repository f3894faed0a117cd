"""Bytes and operations, wherever they are stated."""

from typing import Final

import polars as pl
from tests.views.agreement import Asked, Sides, host_rows, summed

from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS


def memory_of_all(ask: Asked) -> Sides:
    """All rows of each view add up to the bytes allocated less released."""
    if not ask.trace.memory.height:
        return
    table = ask("memory_operators")
    on_host = pl.col("device_type") == "CPU"
    for side, own in (("cpu", on_host), ("device", ~on_host)):
        whole = table.filter(own)["self_size_increase"].sum()
        yield f"{side} in lines", whole, ask("lines")[f"{side}_memory"].sum()
        yield f"{side} in operators", whole, ask("operators")[f"self_{side}_memory_usage"].sum()
        if ask("modules").height:
            roots = ask("modules").filter(pl.col("parent").is_null())
            yield f"{side} in modules", whole, roots[f"{side}_memory"].sum()


def memory_of_a_line(ask: Asked) -> Sides:
    """`lines` and `memory_operators` by line charge the same bytes to each line."""
    if not ask.trace.memory.height or ask.trace.memory["call_stack"].is_not_null().any():
        return
    table = ask("memory_operators", by="line")
    on_host = pl.col("device_type") == "CPU"
    for side, own in (("cpu", on_host), ("device", ~on_host)):
        stated = summed(table.filter(own), SOURCE_SITE_COLUMNS, "self_size_increase")
        yield side, stated, summed(ask("lines"), SOURCE_SITE_COLUMNS, f"{side}_memory")


def memory_of_an_operators_line(ask: Asked) -> Sides:
    """`lines` and `operators` by line charge the same bytes to each known line."""
    if not ask.trace.memory.height:
        return
    lines = ask("lines").filter(pl.col("file").is_not_null())
    known = host_rows(ask("operators", by="line")).filter(pl.col("file").is_not_null())
    for side in ("cpu", "device"):
        stated = summed(lines, SOURCE_SITE_COLUMNS, f"{side}_memory")
        yield side, stated, summed(known, SOURCE_SITE_COLUMNS, f"self_{side}_memory_usage")


def memory_of_an_operator(ask: Asked) -> Sides:
    """`operators` and `memory_operators` charge the same bytes to each name."""
    if not ask.trace.memory.height:
        return
    known = host_rows(ask("operators"))
    table = ask("memory_operators").filter(pl.col("name") != "outside operators")
    on_host = pl.col("device_type") == "CPU"
    for side, own in (("cpu", on_host), ("device", ~on_host)):
        for kind in ("self_", ""):
            stated = summed(table.filter(own), ("name",), f"{kind}size_increase")
            yield kind + side, stated, summed(known, ("name",), f"{kind}{side}_memory_usage")


def memory_allocated(ask: Asked) -> Sides:
    """Blocks of `memory_events` are what `memory_operators` counts as allocated."""
    blocks = ask("memory_events").filter(
        pl.col("allocated").is_not_null() & (pl.col("state") != "failed")
    )
    yield (
        "blocks",
        summed(blocks, ("device_type", "device"), "size"),
        summed(ask("memory_operators"), ("device_type", "device"), "self_allocation_size"),
    )


def memory_peaks(ask: Asked) -> Sides:
    """`memory_peak` adds up to the highest total of `memory_curve`."""
    place = ("device_type", "device")
    curve = ask("memory_curve", points=0)
    opening = curve.group_by(place).agg(pl.col("allocated").max())
    peak = ask("memory_peak")
    yield "curve", summed(opening, place, "allocated"), summed(peak, place, "bytes")


def operations(ask: Asked) -> Sides:
    """`modules` and `operators` count the same operations by model."""
    if not ask("modules").height or ask("modules")["model_flops"].null_count():
        return
    roots = ask("modules").filter(pl.col("parent").is_null())
    yield "modules", ask("operators")["self_model_flops"].sum(), roots["model_flops"].sum()


OF_MEMORY: Final = (
    memory_of_all,
    memory_of_a_line,
    memory_of_an_operators_line,
    memory_of_an_operator,
    memory_allocated,
    memory_peaks,
    operations,
)
