"""Matrix products run in float32 without using the tensor cores.

## What it means
Products and convolutions take float32 tensors, and their kernels run on the scalar units, though
the device has tensor cores: these take float16 and, since Ampere, bfloat16 and TF32. It may be the
head of a network alone that was left in float32.

In the trace: operators that multiply float32 inputs, and kernels whose names are not those of
tensor cores, in a tenth of the device's time or more.

## Why it costs
Tensor cores multiply 8 to 16 times as fast as scalar units, and half as wide numbers are half as
many bytes to move.

## What to do
Since Ampere one line lets float32 products use TF32, which keeps the range of float32 and 10 bits
of its mantissa: `torch.set_float32_matmul_precision("high")`. Train under
`torch.autocast("cuda", torch.bfloat16)` to halve the bytes as well; before Ampere with float16 and
a `GradScaler`. Compare the loss over some hundred steps. Where full precision is meant, leave it. A
language model in half precision needs no head in float32: convert the logits that are used.

The estimate leaves half of these kernels' time; 70 % before Ampere.

## Fires on
Single precision on an Ampere GPU that works all the time.

    column = 1 ms
    mark 1 | ssssttttuuuu
    cpu 1  | aaabaaabaaab
    call 1 | k  bk  bk  b
    gpu 7  | kkkkkkkbkkkkkkkbkkkkkkkb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_types = ["float","float"]; input_shapes = [[64,64],[64,64]]
    b = aten::relu; input_types = ["float"]; input_shapes = [[64,64]]
    k = ampere_sgemm_128x64_nn

## Silent on
The same products on tensor cores, as TF32.

    column = 1 ms
    mark 1 | ssssttttuuuu
    cpu 1  | aaabaaabaaab
    call 1 | k  bk  bk  b
    gpu 7  | kkkkkkkbkkkkkkkbkkkkkkkb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_types = ["float","float"]; input_shapes = [[64,64],[64,64]]
    b = aten::relu; input_types = ["float"]; input_shapes = [[64,64]]
    k = ampere_s1688gemm_fp16_128x128_ldg8_f2f_nn

A program that the host holds up: faster products would only wait longer.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaaaaaaabaaaaaaaaabaaaaaaaaab
    call 1 | k         k         k
    gpu 7  |  kkk       kkk       kkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_types = ["float","float"]; input_shapes = [[64,64],[64,64]]
    b = aten::relu; input_types = ["float"]; input_shapes = [[64,64]]
    k = ampere_sgemm_128x64_nn
"""

import json
from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import operators_in_counted_steps
from selftime.advice.detectors.counted_steps import recorded_step_count
from selftime.advice.replay import ScaleDeviceWork
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Where,
    rule,
    where_from_row,
)
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.device.device_work import device_work
from selftime.analysis.slice_filters import filter_by_name
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.trace import Trace
from selftime.units import whole_percent_text

MIN_FLOAT32_PRODUCT_SHARE_OF_DEVICE_TIME: Final = 0.1
"""Smallest share of device time in float32 matrix products to report, as the fix lowers
precision."""

TF32_TO_FLOAT32_TIME_RATIO: Final = 0.5
"""Assumed time of matrix products in TF32 as a share of their time in float32."""

FLOAT16_TO_FLOAT32_TIME_RATIO: Final = 0.7
"""Assumed time of matrix products in float16 as a share of their time in float32, on devices before
Ampere."""

MIN_TENSOR_CORE_TO_FLOAT32_TIME_RATIO: Final = 0.05
"""Smallest time of matrix products on tensor cores as a share of their time in float32."""

MIN_TENSOR_CORE_COMPUTE_CAPABILITY: Final = 7
"""Smallest major compute capability of devices with tensor cores: Volta."""

HALF_PRECISION_DTYPES: Final = ("c10::Half", "c10::BFloat16")
"""Names of half-precision dtypes in traces."""

MIN_TF32_COMPUTE_CAPABILITY: Final = 8
"""Smallest major compute capability of devices with TF32 and bfloat16 tensor cores: Ampere."""


@rule(covers=("E1", "E2", "K8"), needs=("device", "links", "shapes"), broad=True)
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    capability = _lowest_compute_capability_major(trace)
    kernels = _float32_matrix_kernels_on_scalar_units(trace)
    if limits is None or not kernels.height or capability < MIN_TENSOR_CORE_COMPUTE_CAPABILITY:
        yield Checked("no float32 product runs without using the tensor cores", is_absent=True)
        return
    spent_ms = sum(kernels["duration"].to_list()) / recorded_step_count(trace) / 1e6
    if _share_of_step_device_time(trace, kernels) < MIN_FLOAT32_PRODUCT_SHARE_OF_DEVICE_TIME:
        yield Checked(
            "float32 products without tensor cores take less than "
            f"{whole_percent_text(MIN_FLOAT32_PRODUCT_SHARE_OF_DEVICE_TIME)} of the device's time",
            spent_ms,
            is_slowed=False,
        )
        return
    time_share = (
        TF32_TO_FLOAT32_TIME_RATIO
        if capability >= MIN_TF32_COMPUTE_CAPABILITY
        else FLOAT16_TO_FLOAT32_TIME_RATIO
    )
    ids = kernels["id"].cast(pl.Int64).to_numpy()
    change = ScaleDeviceWork(ids, time_share)
    claim = RemovalClaim(
        (change,), largest_changes=(ScaleDeviceWork(ids, MIN_TENSOR_CORE_TO_FLOAT32_TIME_RATIO),)
    )
    yield _finding(trace, kernels, claim)


def _lowest_compute_capability_major(trace: Trace) -> int:
    """Returns the smallest major compute capability of all devices; 8 if it is unknown.

    Devices without tensor cores are older than traces that do not describe devices.
    """
    known = trace.devices["compute_major"].drop_nulls().to_list()
    return min(known, default=MIN_TF32_COMPUTE_CAPABILITY)


def _float32_matrix_kernels_on_scalar_units(trace: Trace) -> pl.DataFrame:
    """Returns the measured steps' float32 matrix kernels that do not use tensor cores."""
    return filter_by_name(
        _matrix_kernels_with_input_dtypes(trace, {"float"}), _is_matrix_kernel_on_scalar_units
    )


def _matrix_kernels_with_input_dtypes(trace: Trace, dtypes: set[str]) -> pl.DataFrame:
    """Returns the measured steps' matrix kernels whose input dtypes are exactly `dtypes`."""
    operators = operators_in_counted_steps(trace).filter(pl.col("input_types").is_not_null())
    operators = filter_by_name(operators, names.is_matrix_operator)
    types = operators["input_types"].cast(pl.String)
    mine = [
        text for text in types.unique().to_list() if _floating_point_input_dtypes(text) == dtypes
    ]
    operators = operators.filter(types.is_in(mine))
    work = device_work(trace).filter(pl.col("kind") == "kernel")
    return work.filter(pl.col("operator").is_in(operators["id"].implode()))


def _are_kernels_of_float32_output_layer(trace: Trace, float32_kernels: pl.DataFrame) -> bool:
    """Returns whether float32 kernels belong to the output layer of a half-precision network."""
    if filter_by_name(trace.slices, names.is_backward_node).height:
        return False
    half = pl.concat(
        [
            _matrix_kernels_with_input_dtypes(trace, {dtype})["duration"]
            for dtype in HALF_PRECISION_DTYPES
        ]
    )
    return bool(half.sum() > float32_kernels["duration"].sum())


def _is_matrix_kernel_on_scalar_units(kernel_name: str) -> bool:
    is_product = names.kernel_class(kernel_name) in {"gemm", "convolution", "attention"}
    return is_product and names.uses_tensor_cores(kernel_name) is False


def _floating_point_input_dtypes(input_types: str) -> set[str]:
    """Returns the floating-point dtypes of an operator's inputs; empty if unreadable."""
    try:
        dtypes = json.loads(input_types)
    except ValueError:
        return set()
    if not isinstance(dtypes, list):
        return set()
    return {
        dtype for dtype in dtypes if isinstance(dtype, str) and dtype in names.FLOATING_POINT_DTYPES
    }


def _share_of_step_device_time(trace: Trace, kernels: pl.DataFrame) -> float:
    """Returns the share of the measured steps' device time that the kernels take."""
    counted = operators_in_counted_steps(trace)["id"]
    mine = device_work(trace).filter(pl.col("operator").is_in(counted.implode()))
    whole = sum(mine["duration"].to_list())
    return float(sum(kernels["duration"].to_list()) / whole) if whole else 0.0


def _line_with_most_kernel_time(trace: Trace, kernels: pl.DataFrame) -> Where:
    """Returns the source line whose kernels take the most device time."""
    placed = source_sites_of_slices(trace, kernels["id"]).with_columns(time=kernels["duration"])
    lines = placed.group_by(*SOURCE_SITE_COLUMNS, maintain_order=True).agg(pl.col("time").sum())
    return where_from_row(
        lines.sort("time", descending=True, maintain_order=True).row(0, named=True)
    )


def _finding(trace: Trace, kernels: pl.DataFrame, claim: RemovalClaim) -> Finding:
    steps = recorded_step_count(trace)
    is_ampere = _lowest_compute_capability_major(trace) >= MIN_TF32_COMPUTE_CAPABILITY
    share = _share_of_step_device_time(trace, kernels)
    is_head = _are_kernels_of_float32_output_layer(trace, kernels)
    return Finding(
        covers=("E1", *(("E2",) if is_ampere else ()), *(("K8",) if is_head else ())),
        title=(
            f"{whole_percent_text(share)} of device time is float32 matrix products without tensor "
            "cores"
        ),
        where=_line_with_most_kernel_time(trace, kernels),
        count_per_step=kernels.height / steps,
        claim=claim,
        confidence="medium",
        semantics="numerics",
        evidence=(
            Evidence(
                "device time in float32 products, a step",
                sum(kernels["duration"].to_list()) / steps / 1e6,
                "ms",
            ),
            Evidence("share of device time in float32 products", share, "ratio"),
        ),
        fix=_FLOAT32_OUTPUT_LAYER_FIX if is_head else _lower_precision_fix(has_tf32=is_ampere),
    )


_FLOAT32_OUTPUT_LAYER_FIX: Final = Fix(
    "Run the head in the precision of the network; compare the tokens that it generates.",
    "logits = head(hidden)          # head.to(hidden.dtype), once\n"
    "probabilities = logits[:, -1].float().softmax(dim=-1)  # of what is used",
)
"""Fix for the output layer (head) of a half-precision network that was left in float32."""


def _lower_precision_fix(*, has_tf32: bool) -> Fix:
    text = "the named line takes most of the time. Compare the loss over some steps"
    if has_tf32:
        return Fix(
            f"Let products use TF32, or train under autocast; {text}.",
            'torch.set_float32_matmul_precision("high")\n'
            "torch.backends.cudnn.allow_tf32 = True\n"
            '# or, for half the bytes as well:\nwith torch.autocast("cuda", torch.bfloat16): ...',
        )
    return Fix(
        f"Train under autocast with float16 and a `GradScaler`; {text}.",
        'scaler = torch.amp.GradScaler("cuda")\nwith torch.autocast("cuda", torch.float16): ...',
    )
