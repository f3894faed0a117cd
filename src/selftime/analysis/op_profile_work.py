"""Divides a trace's time into parts by module, pass, operator and kernel, with what is modelled.

A part of the device's time is a kernel, copy or fill; of the host's time it is the self time of a
slice of the call tree. A part belongs to the module of the slice that launched it, as in the view
`modules`, and to the innermost operator around it whose work is modelled, else to the innermost
operator. How near it comes to the machine's peak is what `operator_efficiencies` says, as in the
account of the step.
"""

from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.account.useful_work import cpu_peaks_of_trace, operator_efficiencies
from selftime.analysis.call_tree.costs import device_work_by_launching_entry
from selftime.analysis.call_tree.module_tree import ModuleTree, module_tree
from selftime.analysis.call_tree.parent_array_forests import nearest_marked_of_every_node
from selftime.analysis.call_tree.self_times import SelfTimes, self_times
from selftime.analysis.call_tree.training_passes import PassTree, find_training_passes
from selftime.analysis.models import OperatorFamily
from selftime.analysis.models.modelled_operator_work import (
    OPERATOR_FAMILIES,
    ModelledOperatorWork,
    modelled_work_of_calls,
    outermost_modelled_operators,
)
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import arguments_of_slices
from selftime.analysis.slice_grouping import (
    group_and_first_row_of_rows,
    input_shapes,
    map_distinct_names,
)
from selftime.array_types import Flags, Ints
from selftime.names.kernel_kinds import kernel_class
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

PART_KEYS: Final = ("module", "pass", "operator", "kind", "category", "input_shapes", "kernel")
"""Columns by which parts are told apart."""
PART_AMOUNTS: Final = ("time", "count", "known_time", "least_time", "flops", "bytes", "peak_ps")
"""Columns with the summed amounts of parts: times in ns, `peak_ps` in ps."""

NAME_OF_UNKNOWN_OPERATOR: Final = "(operator not recorded)"
"""The operator of device work that no recorded call launched."""
NAME_OF_PYTHON: Final = "(Python)"
"""The operator of host time in Python frames, outside operators."""

_CATEGORY_OF_OPERATOR_FAMILY: Final[dict[OperatorFamily, str]] = {
    "attention": "attention",
    "convolution": "convolution",
    "recurrence": "recurrence",
    "product": "gemm",
    "norm": "normalization",
    "softmax": "softmax",
    "reduction": "reduction",
    "pointwise": "elementwise",
    "movement": "copy",
}
"""Maps the family of a modelled operator to the class of kernels that compute the same."""
_KIND_BY_SLICE_CATEGORY: Final = {
    **dict.fromkeys(names.OPERATOR_CATEGORIES, "operator"),
    **dict.fromkeys(names.ANNOTATION_CATEGORIES, "annotation"),
}
_CATEGORIES_OF_FAMILIES: Final = tuple(
    _CATEGORY_OF_OPERATOR_FAMILY[family] for family in OPERATOR_FAMILIES
)
_CATEGORY_OF_HOST_KIND: Final = {"operator": "other", "frame": "Python", "call": "runtime call"}


@cached_per_trace
def modules_of_profile(trace: Trace) -> ModuleTree:
    """Returns the tree of modules to whose nodes the column `module` of parts refers."""
    return module_tree(trace, find_training_passes(trace))


@cached_per_trace
def device_time_parts(trace: Trace) -> pl.DataFrame:
    """Returns the parts of the device's time, summed by `PART_KEYS`.

    Columns: `PART_KEYS`, with module the node of the tree, or -1 outside modules; pass the code of
    the training pass, or null if unknown; kernel null in rows of what operators compute.
    `PART_AMOUNTS`: time; count of device slices; known_time, the part of the time whose efficiency
    is known; least_time, what that part takes at the machine's peak; flops, bytes, and peak_ps, the
    time that the operations take at the peak rate.
    """
    source = _ProfileSource(trace, is_on_device=True)
    work = device_work_by_launching_entry(trace, source.tree.entries)
    ids = pl.Series("id", work.id, dtype=pl.UInt32)
    operator = arguments_of_slices(trace, "device_args", ids, "operator")["operator"]
    launcher = pl.select(pl.coalesce(operator, trace.slices["launch"].gather(ids))).to_series()
    kernels = trace.slices["name"].gather(ids)
    parts = source.parts(launcher, work.owner, work.duration).with_columns(kernel=kernels)
    summed = source.summed(parts, source.modelled_work(source.host.device))
    kernel_kind = map_distinct_names(summed["kernel"], kernel_class).cast(pl.String)
    return source.named(summed, kernel_kind)


@cached_per_trace
def host_time_parts(trace: Trace) -> pl.DataFrame:
    """Returns the parts of the host's time, with the columns of `device_time_parts`.

    No kernel is told, and where a device works, no efficiency and no modelled work.
    """
    source = _ProfileSource(trace, is_on_device=False)
    entries = source.tree.entries
    at = np.flatnonzero(entries.self_time)
    ids = pl.Series("id", entries.id[at], dtype=pl.UInt32)
    parts = source.parts(ids, at, entries.self_time[at])
    parts = parts.with_columns(kernel=pl.lit(None, pl.Categorical))
    work = source.modelled_work(source.host.cpu)
    summed = source.summed(parts, work.clear() if trace.device_args.height else work)
    return source.named(summed, None)


class _ProfileSource:
    """What the parts of a trace's time are made of."""

    def __init__(self, trace: Trace, *, is_on_device: bool) -> None:
        self.trace = trace
        self.tree: PassTree = find_training_passes(trace)
        self.node = modules_of_profile(trace).node
        self.host: SelfTimes = self_times(trace)
        self.work: ModelledOperatorWork = modelled_work_of_calls(trace)
        self.is_on_device = is_on_device
        self.is_rated = is_on_device or cpu_peaks_of_trace(trace) is not None
        operator = self._operator_of_entries()
        told_apart = self._operator_keys(trace)
        group, first = group_and_first_row_of_rows(told_apart)
        self.group = np.append(group[operator], NO_SLICE)
        self.operators = told_apart[pl.Series(first)]

    def _operator_of_entries(self) -> Ints:
        """Returns for each host slice the operator that it belongs to; itself without one."""
        parent, every = self.host.parent, np.arange(self.host.id.size)
        is_modelled: Flags = self.work.is_counted
        if not self.is_on_device:
            is_modelled = outermost_modelled_operators(parent, self.work)
        is_operator = self.host.category.is_in(list(names.OPERATOR_CATEGORIES)).to_numpy()
        modelled = nearest_marked_of_every_node(parent, is_modelled)
        innermost = nearest_marked_of_every_node(parent, is_operator)
        innermost = np.where(innermost == NO_SLICE, every, innermost)
        return np.where(modelled == NO_SLICE, innermost, modelled)

    def _operator_keys(self, trace: Trace) -> pl.DataFrame:
        """Returns what tells operators apart, one row for each host slice."""
        ids = pl.Series("id", self.host.id, dtype=pl.UInt32)
        return pl.DataFrame(
            {
                "operator": self.host.name,
                "kind": map_distinct_names(
                    self.host.category, lambda name: _KIND_BY_SLICE_CATEGORY.get(name, "call")
                ),
                "input_shapes": input_shapes(trace, ids),
                "family": np.where(self.work.is_counted, self.work.family, NO_SLICE),
            }
        )

    def parts(self, slices: pl.Series, owner: Ints, duration: Ints) -> pl.DataFrame:
        """Returns the parts of time, one row for each.

        Args:
            slices: The id of the host slice that each part belongs to or that launched it, or null.
            owner: The index in the call tree that decides the module and pass of each part, or -1.
            duration: The time of each part in ns.
        """
        asked = slices.cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
        group = self.group[np.append(self.host.owner, NO_SLICE)[asked]]
        efficiency = (
            _efficiencies_of_slices(self.trace, slices)
            if self.is_rated
            else pl.lit(None, pl.Float64)
        )
        time = pl.col("time")
        return (
            pl.DataFrame({**self._place(owner), "group": group, "time": duration})
            .with_columns(efficiency=efficiency, count=pl.lit(1, pl.Int64))
            .with_columns(
                known_time=pl.when(pl.col("efficiency").is_not_null()).then(time).otherwise(0),
                least_time=(time * pl.col("efficiency")).round().cast(pl.Int64).fill_null(0),
            )
            .drop("efficiency")
        )

    def modelled_work(self, run_time: Ints) -> pl.DataFrame:
        """Returns the modelled work of operators that took time, as rows without time."""
        at = np.flatnonzero(self.work.is_counted & (run_time > 0))
        return pl.DataFrame(
            {
                **self._place(self.tree.entries.place[self.host.id[at]]),
                "group": self.group[at],
                "flops": self.work.flops[at],
                "bytes": self.work.bytes[at],
                "peak_ps": self.work.time_at_peak[at],
            }
        )

    def _place(self, owner: Ints) -> dict[str, Any]:
        """Returns the module and the pass of slices of the call tree."""
        running = pl.Series(np.append(self.tree.pass_code, np.int8(0))[owner], dtype=pl.Int8)
        return {
            "module": np.append(self.node, NO_SLICE)[owner],
            "pass": running.set(pl.Series(owner == NO_SLICE), None),
        }

    def summed(self, parts: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
        """Returns the parts and what was computed in them, summed by what tells them apart."""
        both = pl.concat([parts, work], how="diagonal")
        keys = ("module", "pass", "group", "kernel")
        return both.group_by(keys, maintain_order=True).agg(pl.col(PART_AMOUNTS).sum())

    def named(self, parts: pl.DataFrame, kernel_kind: pl.Series | None) -> pl.DataFrame:
        """Returns the parts with the columns `PART_KEYS`; `kernel_kind` is None for host time."""
        is_host = kernel_kind is None
        at = parts["group"].set(parts["group"] == NO_SLICE, None).cast(pl.UInt32)
        told = self.operators.select(pl.all().gather(at)).cast(
            {"operator": pl.String, "kind": pl.String, "input_shapes": pl.String}
        )
        family = pl.col("family").replace_strict(
            dict(enumerate(_CATEGORIES_OF_FAMILIES)), default=None, return_dtype=pl.String
        )
        told = told.with_columns(
            pl.col("operator").fill_null(NAME_OF_PYTHON if is_host else NAME_OF_UNKNOWN_OPERATOR),
            pl.col("kind").fill_null("frame" if is_host else "unknown"),
        )
        plain = pl.col("kind").replace(_CATEGORY_OF_HOST_KIND) if is_host else kernel_kind
        told = told.with_columns(category=plain).with_columns(time=parts["time"])
        if not is_host:
            told = told.with_columns(category=_category_with_most_time())
        told = told.with_columns(category=pl.coalesce(family, "category", pl.lit("other")))
        return parts.hstack(told.drop("family", "time")).select(*PART_KEYS, *PART_AMOUNTS)


def _efficiencies_of_slices(trace: Trace, slices: pl.Series) -> pl.Series:
    """Returns the efficiency of the modelled operator around each slice; null where unknown."""
    return operator_efficiencies(trace).of_slices(slices)["efficiency"]


def _category_with_most_time() -> pl.Expr:
    """Returns for each part the category in which its operator spends most time.

    Work that no operator launched keeps its own.
    """
    by_category = pl.col("time").sum().over("operator", "kind", "category")
    most = pl.col("category").sort_by(by_category, descending=True, nulls_last=True).first()
    return (
        pl.when(pl.col("kind") == "operator")
        .then(most.over("operator", "kind"))
        .otherwise("category")
    )
