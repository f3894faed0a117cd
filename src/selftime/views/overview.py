"""A summary of a recording: its step time and what limits it, its devices, its host."""

import polars as pl

from selftime.analysis.overview_figures import overview_figures
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import view


@view(
    Column(
        "section",
        pl.String,
        "name",
        "The section of the overview: steps, execution, device, host or trace.",
    ),
    Column(
        "device",
        pl.Int32,
        "id",
        "The device that the metric is about; null for other metrics.",
        True,
    ),
    Column("metric", pl.String, "name", "The name of the metric."),
    Column(
        "text", pl.String, "text", "The formatted value of the metric; null where unknown.", True
    ),
    Column("definition", pl.String, "sentence", "The definition of the metric."),
    Column(
        "value",
        pl.Float64,
        "text",
        "The metric as a number in its unit; null for text or where unknown.",
        True,
    ),
    Column("unit", pl.String, "name", "The unit of the metric's value; `text` for text."),
    Column(
        "share",
        pl.Float64,
        "ratio",
        "For a part of the step: its share of the step time; null for other metrics.",
        True,
    ),
)
def overview(trace: Trace) -> pl.DataFrame:
    """The time of a step, what bounds it, how it divides, and how busy devices and host are.

    Every figure has a definition. Medians, averages and shares are of the steps that count: without
    the first, partial steps and outliers. A dash stands for an unknown value.
    """
    rows = [
        (f.section, f.device, f.metric, f.text, f.definition, f.value, f.unit, f.share)
        for f in overview_figures(trace)
    ]
    return pl.DataFrame(rows, schema={c.name: c.dtype for c in overview.columns}, orient="row")
