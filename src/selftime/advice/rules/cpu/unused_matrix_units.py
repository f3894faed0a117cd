"""Matrix products run in float32 without using the CPU's matrix units.

## What it means
The processor has units that multiply matrices of bfloat16 (AMX, on Intel since Sapphire Rapids),
and the step's products take float32 tensors, which these units do not multiply. A processor with
the vector instructions AVX512_BF16 alone gains little, and is not reported.

A trace does not show how oneDNN reorders operands within an operator; `ONEDNN_VERBOSE=1` prints it.
Nor does it show whether memory bandwidth bounds a step: it does if a batch of half the size takes
less than half the time.

In the trace: products and convolutions of float32 inputs, each with 150 operations or more for each
element that it reads and writes, take 30 % of the step or more. The units of the processor are a
fact of a recording by selftime.

## Why it costs
AMX does 16 times as many multiplications a cycle as AVX512 does in float32, on half the bytes.

## What to do
Run the model under `torch.autocast("cpu", torch.bfloat16)`: parameters stay in float32. Compare the
loss over some hundred steps. How much a model gains depends on its sizes: measure it.

Measured on one core with AMX, training unless it says otherwise: perceptrons of 512, 1,024 and 2,048
features, with 128, 128 and 512 samples, 1.4, 1.5 and 2.9 times as fast, transformers of 256 and 512
features 1.4 and 2.0 times, an LSTM 2.0 times, a ResNet-18 1.2 times with images of 64 and 1.6 times
with 128 pixels, a ResNet-50 for inference 1.3 times; BERT of 256 and GPT-2 of 384 features from the
library transformers 1.5 and 1.6 times. Transformers of 128 and 192 features took 0.9 to 1.1 times
as long. With fewer operations for each element, converting costs more than it saves:
perceptrons of 256, 512 and 1,024 features with 32 samples (50 to 60 operations) took 1.3, 1.1 and
1.2 times as long, a MobileNet 1.2 times.

Sizes that change from step to step cost more still: oneDNN prepares a product of sizes that it has
not seen. Products of about 700 x 1640 by 1640 x 1433, of new sizes each, took 27 ms for the first
time and 3.3 ms later; in float32 18.9 ms. So the rule is silent where two sizes of most products
differ between the recorded steps: pad to few sizes first. One size, as the length of a text, takes
few values, so that each returns.

The estimate leaves half of the time of these products, with the conversions of what they take, and a
fifth at best. At worst the step takes a tenth longer, as the transformers of 128 and 192 features. Of
programs of other people eight of which this is said gained 0.5 to 2.1 times the estimate. Those that
lost are ruled out: one took 1.8 times as long whose sizes change, and others compute little with each
element. A single recorded step does not tell whether sizes change: then confidence is low, and at worst
the products take twice as long.

## Fires on
Products in float32 on a processor with AMX.

    column = 1 ms
    facts = {"settings": {"cpu_bfloat16": "AMX"}}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaabbbbb aaaabbbbb aaaabbbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_types = ["float","float"]; input_shapes = [[512,512],[512,512]]; line = n.py:4 f
    b = aten::relu; input_types = ["float"]; input_shapes = [[512,512]]

## Silent on
A convolution of each channel by itself: it multiplies no matrices.

    column = 1 ms
    facts = {"settings": {"cpu_bfloat16": "AMX"}}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaaaaaabb aaaaaaaabb aaaaaaaab
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::conv2d; input_types = ["float","float"]; input_shapes = [[4,8,126,126],[8,1,63,63],[],[],[],[],[]]; concrete_inputs = ["","","","[1, 1]","[0, 0]","[1, 1]","8"]
    b = aten::relu; input_types = ["float"]; input_shapes = [[4,8,64,64]]

Products in bfloat16.

    column = 1 ms
    facts = {"settings": {"cpu_bfloat16": "AMX"}}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaabbbbb aaaabbbbb aaaabbbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_types = ["c10::BFloat16","c10::BFloat16"]; input_shapes = [[512,512],[512,512]]
    b = aten::relu; input_types = ["float"]; input_shapes = [[512,512]]

Products that compute so little with each element that its conversion costs more than it saves.

    column = 1 ms
    facts = {"settings": {"cpu_bfloat16": "AMX"}}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaabbbbb aaaabbbbb aaaabbbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_types = ["float","float"]; input_shapes = [[64,64],[64,64]]; line = n.py:4 f
    b = aten::relu; input_types = ["float"]; input_shapes = [[64,64]]

Products whose sizes differ in each step, as those of a batch's own neighbours in a graph.

    column = 1 ms
    facts = {"settings": {"cpu_bfloat16": "AMX"}}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaabbbbb ccccbbbbb ddddbbbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_types = ["float","float"]; input_shapes = [[499,601],[601,512]]; line = n.py:4 f
    c = aten::mm; input_types = ["float","float"]; input_shapes = [[473,577],[577,512]]; line = n.py:4 f
    d = aten::mm; input_types = ["float","float"]; input_shapes = [[505,623],[623,512]]; line = n.py:4 f
    b = aten::relu; input_types = ["float"]; input_shapes = [[512,512]]

A processor without such units.

    column = 1 ms
    facts = {"settings": {"cpu_bfloat16": "AVX512_BF16"}}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaabbbbb aaaabbbbb aaaabbbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_types = ["float","float"]; input_shapes = [[512,512],[512,512]]
    b = aten::relu; input_types = ["float"]; input_shapes = [[512,512]]
"""  # noqa: E501 - what a letter stands for is on one line

import json
from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import operators_in_counted_steps, parse_sizes
from selftime.advice.detectors.counted_steps import (
    operator_intervals,
    recorded_step_count,
    recorded_step_windows,
)
from selftime.advice.detectors.operator_changes import change_shortening_operators
from selftime.advice.detectors.recorded_facts import recorded_setting
from selftime.advice.detectors.source_lines import operators_by_line
from selftime.advice.rule_definition import (
    Argument,
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Unknown,
    rule,
)
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.call_tree.self_times import self_times
from selftime.analysis.models.modelled_operator_work import (
    modelled_work_of_calls,
)
from selftime.analysis.slice_filters import filter_by_name
from selftime.intervals import length
from selftime.trace import Trace
from selftime.units import whole_percent_text

MIN_FLOAT32_PRODUCT_SHARE_OF_STEP: Final = 0.3
"""Smallest share of the step in float32 matrix products to report."""

MIN_OPERATIONS_PER_ELEMENT: Final = 150
"""Smallest number of operations of a product, by the elements that it reads and writes, to gain
from bfloat16 more than conversions cost: 124 were slower, 170 faster."""

MAX_NEW_SIZE_SHARE: Final = 0.5
"""Largest share of the products' time in those whose sizes are new in each step: beyond it more is
prepared anew than is saved."""

MIN_CHANGING_SIZES: Final = 2
"""Smallest number of sizes of a product that change from step to step for it to be new in each."""

MIN_STEPS_TO_COMPARE: Final = 2
"""Smallest number of recorded steps that tell whether the sizes of products return."""

BFLOAT16_TO_FLOAT32_TIME_RATIO: Final = 0.5
"""Time of large products in bfloat16 with AMX, and of the conversion of what they take, as a share
of their time in float32: the middle of what was measured, 0.26 to 0.74."""

MOST_BFLOAT16_TO_FLOAT32_TIME_RATIO: Final = 1.0
"""The same where it is largest: other operators become slower by as much as products gain."""

LEAST_BFLOAT16_TO_FLOAT32_TIME_RATIO: Final = 0.2
"""The same where it is smallest."""

_MOST_BIAS_DIMENSIONS: Final = 2
"""Operands of a convolution with more dimensions are its input, its kernel, or a gradient."""

MOST_ADDED_SHARE_OF_STEP: Final = 0.1
"""Largest time that bfloat16 adds, as a share of the step, where sizes of products return: small
transformers, whose products were large enough to be reported, took up to 1.1 times as long."""

MOST_ADDED_SHARE_OF_PRODUCTS: Final = 1.0
"""The same where it is not known whether sizes return, as a share of the time of the products in
float32."""

BFLOAT16_AUTOCAST_FIX_CODE: Final = """with torch.autocast("cpu", torch.bfloat16):
    loss = criterion(model(x), y)"""
"""Example code of the fix: a step with matrix products in bfloat16."""


@rule(covers=("J7",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    if limits is None or trace.device_args.height:
        yield Checked("the products of the step do not run on the CPU", is_absent=True)
        return
    products = _float32_matrix_operators(trace)
    spent_ms_per_step = limits.scaled_to_typical_step(
        length(operator_intervals(products)) / recorded_step_count(trace) / 1e6
    )
    units = recorded_setting(trace, "cpu_bfloat16")
    if spent_ms_per_step < MIN_FLOAT32_PRODUCT_SHARE_OF_STEP * limits.step_ms:
        text = "products in float32 on the CPU take a small part of the step"
        yield Checked(text, is_absent=not products.height)
    elif units is None:
        yield Unknown("whether the processor multiplies bfloat16: record with `selftime.profile`")
    elif units == "AMX":
        yield _outcome_with_units(trace, limits, products)
    else:
        yield Checked(
            f"the processor has no matrix units for bfloat16, only {units or 'plain vectors'}"
        )


def _float32_matrix_operators(trace: Trace) -> pl.DataFrame:
    """Returns the matrix product operators in the measured steps that have float32 inputs."""
    products = filter_by_name(operators_in_counted_steps(trace), names.is_matrix_operator)
    types = products["input_types"].cast(pl.String)
    products = products.filter(types.str.contains('"float"', literal=True))
    shapes = products["input_shapes"].cast(pl.String)
    is_depthwise = shapes.map_elements(_takes_each_channel_by_itself, pl.Boolean)
    convolutions = filter_by_name(products, names.is_convolution)["id"]
    is_convolution = products["id"].is_in(convolutions.implode())
    return products.filter(~(is_convolution & is_depthwise.fill_null(value=False)))


def _takes_each_channel_by_itself(input_shapes: str) -> bool:
    """Returns whether a convolution takes each channel by itself, so that it has no product."""
    large = [shape for shape in json.loads(input_shapes) if len(shape) > _MOST_BIAS_DIMENSIONS]
    if len(large) < 2:
        return False
    source, kernel = large[-2:]  # the last two, in the backward pass too
    return bool(kernel[1] == 1 and kernel[0] == source[1])


def _outcome_with_units(trace: Trace, limits: StepStatistics, products: pl.DataFrame) -> Outcome:
    large = products.filter(pl.col("id").is_in(_large_products(trace).implode()))
    spent_ms_per_step = limits.scaled_to_typical_step(
        length(operator_intervals(large)) / recorded_step_count(trace) / 1e6
    )
    if spent_ms_per_step < MIN_FLOAT32_PRODUCT_SHARE_OF_STEP * limits.step_ms:
        return Checked(
            "most products in float32 compute too little with each element to gain from bfloat16 "
            "what its conversion costs"
        )
    if _new_size_share(trace, large) > MAX_NEW_SIZE_SHARE:
        return Checked(
            "two sizes of most products in float32 differ from step to step: oneDNN prepares each "
            "product in bfloat16 anew for sizes that it has not seen, which may take as long as "
            "the product in float32; pad to few sizes first",
            spent_ms_per_step,
        )
    return _finding(trace, limits, large, spent_ms_per_step)


def _new_size_share(trace: Trace, products: pl.DataFrame) -> float:
    """Returns the share of the time in products two sizes of which not every recorded step has.

    One such size, as the length of a text, takes few values in a run, so that each returns. 0 if a
    single step was recorded: it does not tell whether sizes return.
    """
    windows = recorded_step_windows(trace)
    if windows.height < MIN_STEPS_TO_COMPARE:
        return 0.0
    step = np.searchsorted(windows["start"].to_numpy(), products["start"].to_numpy(), "right")
    sizes = [
        {size for shape in parse_sizes(text) if len(shape) > 1 for size in shape}
        for text in products["input_shapes"].cast(pl.String).to_list()
    ]
    of_step: dict[int, set[int]] = {}
    for at, own in zip(step.tolist(), sizes, strict=True):
        of_step.setdefault(at, set()).update(own)
    lasting = set.intersection(*of_step.values()) if of_step else set()
    is_new = np.array([len(own - lasting) >= MIN_CHANGING_SIZES for own in sizes], bool)
    time = (products["end"] - products["start"]).to_numpy()
    return float(time[is_new].sum() / max(time.sum(), 1))


def _large_products(trace: Trace) -> pl.Series:
    """Returns the ids of operators that compute so much with each element as gains from AMX."""
    host = self_times(trace)
    work = modelled_work_of_calls(trace)
    elements = work.bytes // names.DTYPE_SIZES_IN_BYTES["float32"]
    is_large = (work.flops > 0) & (work.flops >= MIN_OPERATIONS_PER_ELEMENT * elements)
    return pl.Series(host.id[is_large], dtype=trace.slices["id"].dtype)


def _finding(
    trace: Trace, statistics: StepStatistics, products: pl.DataFrame, spent_ms_per_step: float
) -> Finding:
    share = spent_ms_per_step / statistics.step_ms
    are_sizes_known = recorded_step_windows(trace).height >= MIN_STEPS_TO_COMPARE
    location, slowest = next(operators_by_line(trace, products))
    likely, most, least, none = (
        (change_shortening_operators(trace, products, kept),)
        for kept in (
            BFLOAT16_TO_FLOAT32_TIME_RATIO,
            MOST_BFLOAT16_TO_FLOAT32_TIME_RATIO,
            LEAST_BFLOAT16_TO_FLOAT32_TIME_RATIO,
            0.0,
        )
    )
    return Finding(
        title=f"{whole_percent_text(share)} of the step is float32 matrix products without AMX",
        where=location,
        count_per_step=products.height / recorded_step_count(trace),
        claim=RemovalClaim(
            likely,
            worst_case_changes=most,
            best_case_changes=least,
            largest_changes=none,
            most_added_ms=MOST_ADDED_SHARE_OF_STEP * statistics.step_ms
            if are_sizes_known
            else MOST_ADDED_SHARE_OF_PRODUCTS * spent_ms_per_step,
        ),
        confidence="medium" if are_sizes_known else "low",
        semantics="numerics",
        evidence=(
            Evidence(
                "time in float32 products, a step",
                spent_ms_per_step,
                "ms",
                tuple(slowest["id"].head(3)),
                products["id"].to_numpy(),
            ),
        ),
        fix=Fix(
            "Run the model under autocast, and compare the loss over some steps.",
            BFLOAT16_AUTOCAST_FIX_CODE,
            Argument("loop", "precision", "bfloat16"),
        ),
    )
