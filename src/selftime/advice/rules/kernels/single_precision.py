"""Products of matrices run in float32 beside the tensor cores.

## What it means
Products and convolutions take float32 tensors, and their kernels run on the scalar units, though
the device has tensor cores: these take float16 and, since Ampere, bfloat16 and TF32. It may be the
head of a network alone that was left in float32.

## Why it costs
Tensor cores multiply 8 to 16 times as fast as scalar units, and half as wide numbers are half as
many bytes to move.

## What to do
Since Ampere one line lets float32 products use TF32, which keeps the range of float32 and 10 bits
of its mantissa: `torch.set_float32_matmul_precision("high")`. Train under
`torch.autocast("cuda", torch.bfloat16)` to halve the bytes as well; before Ampere with float16 and
a `GradScaler`. Compare the loss over some hundred steps. Where full precision is meant, leave it. A
language model in half precision needs no head in float32: convert the logits that are used.

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
from selftime.advice.base import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Saving,
    Where,
    rule,
    where,
)
from selftime.advice.detectors.counted_steps import steps_recorded
from selftime.advice.detectors.operators import recorded_operators
from selftime.advice.gate import gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Scale
from selftime.analysis.device.work import device_work
from selftime.analysis.sites import SITE, sites
from selftime.analysis.slice_filters import filter_by_name
from selftime.trace import Trace

LEAST_SHARE: Final = 0.1
"""Of the device time of the steps: below it another precision is not worth what it may change."""

KEPT: Final = 0.5
"""Of the time, as TF32: a third at best; what does not fill the tensor cores gains less."""

KEPT_IN_HALF: Final = 0.7
"""Of the time, as float16 on the first tensor cores: half the bytes, and conversions besides."""

KEPT_AT_LEAST: Final = 0.05
"""Of the time at best: tensor cores are up to 16 times as fast, on half the bytes."""

TENSOR_CORES: Final = 7
"""The compute capability since which there are tensor cores: Volta."""

HALF: Final = ("c10::Half", "c10::BFloat16")
"""The types of half precision, as `Input type` names them."""

AMPERE: Final = 8
"""The compute capability since which tensor cores take bfloat16 and TF32."""


@rule(covers=("E1", "E2", "K8"), needs=("device", "links", "shapes"), broad=True)
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    capability = _capability(trace)
    work = _single(trace)
    if limits is None or not work.height or capability < TENSOR_CORES:
        yield Checked("no product of float32 matrices runs beside tensor cores", is_absent=True)
        return
    spent = sum(work["duration"].to_list()) / steps_recorded(trace) / 1e6
    if _share(trace, work) < LEAST_SHARE:
        yield Checked(
            f"products in float32 beside tensor cores take {spent:.2f} ms of the device a step",
            limits.unrecorded(spent),
        )
        return
    keep = KEPT if capability >= AMPERE else KEPT_IN_HALF
    ids = work["id"].cast(pl.Int64).to_numpy()
    change = Scale(ids, keep)
    saving = priced(trace, limits, change, most=(Scale(ids, KEPT_AT_LEAST),))
    yield limits.judge(_finding(trace, work, saving, change))


def _capability(trace: Trace) -> int:
    """The least major compute capability of the devices; 8 where none is described.

    What has no tensor cores is long gone, and older than the traces that do not describe devices.
    """
    known = trace.devices["compute_major"].drop_nulls().to_list()
    return min(known, default=AMPERE)


def _single(trace: Trace) -> pl.DataFrame:
    """Kernels of the steps that count that multiply float32 on scalar units."""
    return filter_by_name(_products_in(trace, {"float"}), _multiplies_beside)


def _products_in(trace: Trace, kinds: set[str]) -> pl.DataFrame:
    """Kernels of the steps that count whose products are of tensors of these types alone."""
    operators = recorded_operators(trace).filter(pl.col("input_types").is_not_null())
    operators = filter_by_name(operators, names.is_matrix_operator)
    types = operators["input_types"].cast(pl.String)
    mine = [text for text in types.unique().to_list() if _kinds(text) == kinds]
    operators = operators.filter(types.is_in(mine))
    work = device_work(trace).filter(pl.col("kind") == "kernel")
    return work.filter(pl.col("operator").is_in(operators["id"].implode()))


def _is_head(trace: Trace, work: pl.DataFrame) -> bool:
    """Whether a network that runs in half precision, and is not trained, has these products too."""
    if filter_by_name(trace.slices, names.is_backward_node).height:
        return False
    half = pl.concat([_products_in(trace, {kind})["duration"] for kind in HALF])
    return bool(half.sum() > work["duration"].sum())


def _multiplies_beside(name: str) -> bool:
    is_product = names.kernel_class(name) in {"gemm", "convolution", "attention"}
    return is_product and names.uses_tensor_cores(name) is False


def _kinds(text: str) -> set[str]:
    """The floating types among inputs; none where nobody can read them."""
    try:
        told = json.loads(text)
    except ValueError:
        return set()
    if not isinstance(told, list):
        return set()
    return {kind for kind in told if isinstance(kind, str) and kind in names.FLOATING}


def _share(trace: Trace, work: pl.DataFrame) -> float:
    """Of the time of all that the steps that count launched."""
    counted = recorded_operators(trace)["id"]
    mine = device_work(trace).filter(pl.col("operator").is_in(counted.implode()))
    whole = sum(mine["duration"].to_list())
    return float(sum(work["duration"].to_list()) / whole) if whole else 0.0


def _place(trace: Trace, work: pl.DataFrame) -> Where:
    """The line that launched most of the work."""
    placed = sites(trace, work["id"]).with_columns(time=work["duration"])
    lines = placed.group_by(*SITE, maintain_order=True).agg(pl.col("time").sum())
    return where(lines.sort("time", descending=True, maintain_order=True).row(0, named=True))


def _finding(trace: Trace, work: pl.DataFrame, saving: Saving, change: Scale) -> Finding:
    steps = steps_recorded(trace)
    is_ampere = _capability(trace) >= AMPERE
    share = _share(trace, work)
    is_head = _is_head(trace, work)
    return Finding(
        covers=("E1", *(("E2",) if is_ampere else ()), *(("K8",) if is_head else ())),
        title=f"{share:.0%} of device time are products in float32 beside the tensor cores",
        where=_place(trace, work),
        count_per_step=work.height / steps,
        saving=saving,
        confidence="medium",
        semantics="numerics",
        evidence=(
            Evidence("device time in them", sum(work["duration"].to_list()) / steps / 1e6, "ms"),
            Evidence("share of device time", share, "ratio"),
        ),
        fix=_HEAD if is_head else _fix(is_ampere=is_ampere),
        changes=(change,),
    )


_HEAD: Final = Fix(
    "Run the head in the precision of the network; compare the tokens that it gives.",
    "logits = head(hidden)          # head.to(hidden.dtype), once\n"
    "probabilities = logits[:, -1].float().softmax(dim=-1)   # of what is used",
)
"""A head that was left in float32."""


def _fix(*, is_ampere: bool) -> Fix:
    text = "the named line is the one with most of the time. Compare the loss over some steps"
    if is_ampere:
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
