"""A distance of all pairs is computed by a tensor of all pairs of rows.

## What it means
`(a[:, None] - b[None]).pow(2).sum(-1)`, the norm of such a difference, the sum of such a product
or `F.cosine_similarity(a[:, None], b[None], dim=-1)` makes a tensor of each pair of rows, and adds
up its last dimension.

In the trace: an operator on two tensors each of which is repeated along a dimension of the other,
and then operators on tensors of the sizes of its result that end in a sum or a norm along a
dimension that both have. Where another operator takes the tensor of pairs as well, as for the
directions between points, the rule is silent.

## Why it costs
For n and m rows of d elements the tensor has n m d, which each of three or more operators writes or
reads in memory, and which is kept for the backward pass. A matrix product reads n d and m d, and
writes n m.

## What to do
Products: `a @ b.T`. Cosines: the product of the rows of length one. Distances: `torch.cdist`;
squared ones by a product, `a.pow(2).sum(-1)[:, None] + b.pow(2).sum(-1) - 2 * a @ b.T`, which rounds
more where rows nearly agree.

The estimate gives these operators, and their gradients, the time of the product and of some passes
over its result; the lower end half of their time.

## Fires on
Squared distances of all pairs.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | allxxpppqqallxxpppqq
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::relu; input_shapes = [[256,128]]; input_types = ["float"]
    l = aten::linear; input_shapes = [[256,128],[128,128]]; input_types = ["float","float"]
    x = aten::sub; input_shapes = [[256,1,128],[1,256,128],[]]; input_types = ["float","float","Scalar"]; line = net.py:8 loss
    p = aten::pow; input_shapes = [[256,256,128],[]]; input_types = ["float","Scalar"]; concrete_inputs = ["","2"]; line = net.py:8 loss
    q = aten::sum; input_shapes = [[256,256,128],[],[],[]]; input_types = ["float","ScalarList","Scalar",""]; concrete_inputs = ["","[-1]","False",""]; line = net.py:8 loss

## Silent on
The differences are used as well.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | allxxnnndd allxxnnndd
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::relu; input_shapes = [[256,128]]; input_types = ["float"]
    l = aten::linear; input_shapes = [[256,128],[128,128]]; input_types = ["float","float"]
    x = aten::sub; input_shapes = [[256,1,128],[1,256,128],[]]; input_types = ["float","float","Scalar"]
    n = aten::linalg_vector_norm; input_shapes = [[256,256,128],[],[],[],[]]; input_types = ["float","Scalar","ScalarList","Scalar",""]; concrete_inputs = ["","2","[-1]","True",""]
    d = aten::div; input_shapes = [[256,256,128],[256,256,1]]; input_types = ["float","float"]

The library's operator.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | allcccccc allcccccc
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::relu; input_shapes = [[256,128]]; input_types = ["float"]
    l = aten::linear; input_shapes = [[256,128],[128,128]]; input_types = ["float","float"]
    c = aten::cdist; input_shapes = [[256,128],[256,128],[],[]]; input_types = ["float","float","Scalar",""]
"""  # noqa: E501 - what a letter stands for is on one line

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime.advice.detectors.attained_rates import moving_ns, multiplying_ns
from selftime.advice.detectors.compared_pairs import ComparedPairs, compared_pairs
from selftime.advice.detectors.counted_operators import with_backward_operators
from selftime.advice.detectors.counted_steps import recorded_step_count
from selftime.advice.detectors.elementwise_operators import forward_operators, operator_ms_per_step
from selftime.advice.detectors.operator_changes import claim_of_shorter_operators
from selftime.advice.detectors.source_lines import operators_by_line
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.step_statistics import step_statistics
from selftime.trace import Trace
from selftime.units import whole_percent_text

MIN_PAIRS_SHARE_OF_STEP: Final = 0.05
"""Smallest share of the step in such operators to report."""

PASSES_OVER_PAIRS: Final = 6
"""How many times the numbers of the pairs are read or written after the product: two sums are
added, and for a distance a root is taken."""

LARGEST_REMAINING_SHARE: Final = 0.5
"""Share of the time that remains if the replacement helps least, as `cdist` of few elements."""

_ELEMENT_BYTES: Final = 4
"""Bytes of an element, which is mostly float32."""

TITLES_BY_KIND: Final = {
    "distance": "Differences of all pairs are written out",
    "product": "Products of all pairs are written out",
    "cosine": "Rows of all pairs are repeated to be compared",
}
"""For each kind of comparison: what a message says of it."""

FIXES_BY_KIND: Final = {
    "distance": Fix(
        "Call `torch.cdist`; squared distances are also the sums of the squares less twice the "
        "product.",
        "d = torch.cdist(a, b)  # for: (a[:, None] - b[None]).norm(dim=-1)\n"
        "aa, bb = a.pow(2).sum(-1), b.pow(2).sum(-1)\n"
        "d2 = aa[:, None] + bb - 2 * a @ b.T  # squared",
    ),
    "product": Fix("Multiply the matrices.", "s = a @ b.T  # for: (a[:, None] * b[None]).sum(-1)"),
    "cosine": Fix(
        "Give the rows length one, and multiply the matrices.",
        "s = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T",
    ),
}
"""For each kind of comparison: what replaces it."""


@rule(covers=("E17",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    found = compared_pairs(trace)
    if step_stats is None or not found:
        yield Checked("no distance or product of all pairs is written out", is_absent=True)
        return
    rows = [(one, at) for at, same in enumerate(found) for one in same.operators]
    table = forward_operators(trace)[[row for row, _ in rows]]
    table = table.with_columns(pairs=pl.Series([at for _, at in rows]))
    heads = table.unique("pairs", keep="first", maintain_order=True)
    for where, of_line in operators_by_line(trace, heads):
        same = table.filter(pl.col("pairs").is_in(of_line["pairs"].implode()))
        both = with_backward_operators(trace, same)
        spent = operator_ms_per_step(trace, both)
        if spent < MIN_PAIRS_SHARE_OF_STEP * step_stats.step_ms:
            least = whole_percent_text(MIN_PAIRS_SHARE_OF_STEP)
            text = f"comparisons of all pairs that are written out take less than {least} of a step"
            yield Checked(text, spent, is_slowed=not trace.device_args.height)
        else:
            compared = [found[at] for at in of_line["pairs"].to_list()]
            yield _finding(trace, compared, same, both, where)


def _finding(
    trace: Trace,
    compared: list[ComparedPairs],
    operators: pl.DataFrame,
    both: pl.DataFrame,
    where: Where,
) -> Finding:
    recorded_ns = operator_ms_per_step(trace, operators) * recorded_step_count(trace) * 1e6
    needed_ns = sum(_needed_ns(trace, one) for one in compared)
    kept = float(np.clip(needed_ns / max(recorded_ns, 1), 0, 1))
    sizes = " x ".join(map(str, compared[0].pairs))
    return Finding(
        title=f"{TITLES_BY_KIND[compared[0].kind]}, a tensor of {sizes}",
        where=where,
        count_per_step=len(compared) / recorded_step_count(trace),
        claim=claim_of_shorter_operators(
            trace, both, kept, largest_kept_share=LARGEST_REMAINING_SHARE
        ),
        confidence="medium",
        semantics="numerics",
        evidence=(
            Evidence(
                "time in these operators and their gradients",
                operator_ms_per_step(trace, both),
                "ms",
                tuple(operators["id"].head(3).to_list()),
                both["id"].to_numpy(),
            ),
            Evidence("elements of the tensor of pairs", compared[0].elements, "count"),
            Evidence("share of the time that remains", kept, "ratio"),
        ),
        fix=FIXES_BY_KIND[compared[0].kind],
    )


def _needed_ns(trace: Trace, compared: ComparedPairs) -> float:
    """Returns about how long the product of the matrices and the passes over its result take."""
    numbers = compared.elements / compared.length
    given = sum(tensor.elements for tensor in compared.rows)
    moved = (given + PASSES_OVER_PAIRS * numbers) * _ELEMENT_BYTES
    return multiplying_ns(trace, 2.0 * compared.elements) + moving_ns(trace, moved)
