"""A product multiplies rows that repeat.

## What it means
`layer(torch.cat([state.repeat(n, 1, 1), items], 2))` scores each of n items with the same state, as
attention by addition does: the rows of the state are written n times, put beside those of the
items, and multiplied n times. The same holds for `layer(x.expand(n, -1, -1))`.

In the trace: `repeat`, or a view with a stride of zero; then a concatenation or a product by a
matrix, or a convolution of width 1, that is the first operator to take a tensor of these sizes and
strides, but for views. A recording names no tensors: where a view or another operator takes one of
this layout in between, the rule is silent.

## Why it costs
A sum over the columns of a concatenation is the sum of the products of its parts: that of a row
needs one multiplication, however often the row is there. The repeated rows and the concatenation
are written, read, kept for the backward pass, and have gradients of their size.

## What to do
Split the weight by columns, multiply each part by itself, and add: the sum repeats the rows. A
part that stays the same from round to round of a loop is multiplied once, before it. Where all
columns repeat, multiply first and repeat the result.

The estimate leaves the share of the operations that is needed, and adds the time of the sums; it
removes what repeated and joined the rows if no other operator takes it.

## Fires on
A state that is repeated for each of 64 items.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | urrpcmmmmaurrpcmmmma
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = aten::relu; input_shapes = [[1,32,128]]; input_types = ["float"]; input_strides = [[4096,128,1]]
    r = aten::repeat; input_shapes = [[1,32,128],[]]; input_types = ["float","ScalarList"]; input_strides = [[4096,128,1],[]]; concrete_inputs = ["","[64, 1, 1]"]; line = net.py:7 forward
    p = aten::transpose; input_shapes = [[64,32,128],[],[]]; input_types = ["float","Scalar","Scalar"]; input_strides = [[4096,128,1],[],[]]; concrete_inputs = ["","0","1"]; line = net.py:7 forward
    c = aten::cat; input_shapes = [[[32,64,128],[32,64,32]],[]]; input_types = ["TensorList","Scalar"]; input_strides = [[[128,4096,1],[2048,32,1]],[]]; concrete_inputs = ["","2"]; line = net.py:8 forward
    m = aten::linear; input_shapes = [[32,64,160],[64,160],[64]]; input_types = ["float","float","float"]; input_strides = [[10240,160,1],[160,1],[1]]; line = net.py:9 forward
    a = aten::tanh; input_shapes = [[32,64,64]]; input_types = ["float"]; input_strides = [[4096,64,1]]

## Silent on
Another tensor of the same sizes is joined.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | urrpcmmmmaurrpcmmmma
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = aten::relu; input_shapes = [[1,32,128]]; input_types = ["float"]; input_strides = [[4096,128,1]]
    r = aten::repeat; input_shapes = [[1,32,128],[]]; input_types = ["float","ScalarList"]; input_strides = [[4096,128,1],[]]; concrete_inputs = ["","[64, 1, 1]"]
    p = aten::transpose; input_shapes = [[64,32,128],[],[]]; input_types = ["float","Scalar","Scalar"]; input_strides = [[4096,128,1],[],[]]; concrete_inputs = ["","0","1"]
    c = aten::cat; input_shapes = [[[32,64,128],[32,64,32]],[]]; input_types = ["TensorList","Scalar"]; input_strides = [[[8192,128,1],[2048,32,1]],[]]; concrete_inputs = ["","2"]
    m = aten::linear; input_shapes = [[32,64,160],[64,160],[64]]; input_types = ["float","float","float"]; input_strides = [[10240,160,1],[160,1],[1]]
    a = aten::tanh; input_shapes = [[32,64,64]]; input_types = ["float"]; input_strides = [[4096,64,1]]
"""  # noqa: E501 - what a letter stands for is on one line

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from selftime.advice.detectors.attained_rates import LEAST_OPERATOR_NS, moving_ns
from selftime.advice.detectors.counted_operators import with_backward_operators
from selftime.advice.detectors.counted_steps import recorded_step_count
from selftime.advice.detectors.elementwise_operators import forward_operators, operator_ms_per_step
from selftime.advice.detectors.operator_changes import change_shortening_operators
from selftime.advice.detectors.repeated_rows import RepeatedProduct, repeated_products
from selftime.advice.detectors.source_lines import operators_by_line
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import step_statistics
from selftime.trace import Trace
from selftime.units import whole_percent_text

MIN_REPEATED_SHARE_OF_STEP: Final = 0.05
"""Smallest share of the step in products of repeated rows to report."""

PASSES_OVER_RESULT: Final = 4
"""How many times the result is read or written when the parts are added: two are read and one is
written, and the backward pass reads it to sum the gradients of repeated rows."""

ADDED_OPERATORS: Final = 6
"""Operators that the split adds for each product: a product and a sum, and about four of their
gradients."""

_ELEMENT_BYTES: Final = 4
"""Bytes of an element, which is mostly float32."""

SPLIT_FIX: Final = Fix(
    "Split the weight by its columns, those of a convolution by its input channels, multiply each "
    "part of the concatenation by itself, and add: the sum repeats "
    "the rows. A part that stays the same between rounds of a loop is multiplied before it.",
    "# for: y = layer(torch.cat([state.repeat(n, 1, 1), items], 2))\n"
    "k = state.shape[-1]\n"
    "of_state = F.linear(state, layer.weight[:, :k], layer.bias)\n"
    "of_items = F.linear(items, layer.weight[:, k:])\n"
    "y = of_state + of_items  # sizes (1, batch, m) and (n, batch, m)",
)
"""The fix where a concatenation has repeated rows beside others."""

REPEAT_LAST_FIX: Final = Fix(
    "Multiply the rows once, and repeat the result.",
    "y = layer(x).expand(n, -1, -1)  # for: layer(x.expand(n, -1, -1))",
)
"""The fix where all that is multiplied is repeated."""


@rule(covers=("E19",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    found = repeated_products(trace)
    if step_stats is None or not found:
        yield Checked("no product multiplies rows that an operator repeated", is_absent=True)
        return
    products = forward_operators(trace)[[one.row for one in found]]
    products = products.with_columns(at=pl.Series(range(products.height)))
    for where, of_line in operators_by_line(trace, products):
        work = _RepeatedWork.of_products(trace, [found[at] for at in of_line["at"].to_list()])
        saved_ms = work.spent_ms(trace) * (1 - work.kept_share(trace))
        if saved_ms < MIN_REPEATED_SHARE_OF_STEP * step_stats.step_ms:
            least = whole_percent_text(MIN_REPEATED_SHARE_OF_STEP)
            text = f"multiplying repeated rows once would save less than {least} of a step"
            yield Checked(text, saved_ms, is_slowed=not trace.device_args.height)
        else:
            yield _finding(trace, work, where)


@dataclass(frozen=True, slots=True)
class _RepeatedWork:
    """Products of repeated rows at a line, and what repeated and joined the rows."""

    products: list[RepeatedProduct]
    multiplied: pl.DataFrame
    """The products, with those of their gradients."""
    made: pl.DataFrame
    """What only made their operand, with its gradients."""

    @classmethod
    def of_products(cls, trace: Trace, products: list[RepeatedProduct]) -> "_RepeatedWork":
        table = forward_operators(trace)
        makers = {maker for one in products if _is_operand_left_out(one) for maker in one.makers}
        return cls(
            products,
            with_backward_operators(trace, table[[one.row for one in products]]),
            with_backward_operators(trace, table[sorted(makers)]),
        )

    def spent_ms(self, trace: Trace) -> float:
        """Returns the ms per step in the products, in what made their operand, and gradients."""
        both = pl.concat([self.multiplied, self.made]).unique("id").sort("start")
        return operator_ms_per_step(trace, both)

    def kept_share(self, trace: Trace) -> float:
        """Returns the share of the time of the products, and of all, that remains."""
        spent = self.spent_ms(trace)
        kept_ms = self.kept_share_of_products(trace) * operator_ms_per_step(trace, self.multiplied)
        return min(kept_ms / spent, 1.0) if spent else 1.0

    def kept_share_of_products(self, trace: Trace) -> float:
        """Returns the share of the products' time that remains, with what the split adds."""
        steps = recorded_step_count(trace)
        recorded_ns = operator_ms_per_step(trace, self.multiplied) * steps * 1e6
        work = [one.rows * one.columns for one in self.products]
        needed = float(np.average([one.kept_share for one in self.products], weights=work))
        added_ns = sum(_added_ns(trace, one) for one in self.products)
        return min(needed + added_ns / max(recorded_ns, 1), 1.0)


def _is_operand_left_out(product: RepeatedProduct) -> bool:
    """Returns whether nothing needs a product's operand: no operator, and no two parts to join."""
    return not product.are_makers_needed and sum(p.repeats == 1 for p in product.parts) < 2


def _added_ns(trace: Trace, product: RepeatedProduct) -> float:
    """Returns about how long the operators take that add up the parts of a product."""
    if len(product.parts) == 1:
        return 0.0
    moved = PASSES_OVER_RESULT * product.rows * product.columns * _ELEMENT_BYTES
    return moving_ns(trace, moved) + ADDED_OPERATORS * LEAST_OPERATOR_NS


def _finding(trace: Trace, work: _RepeatedWork, where: Where) -> Finding:
    kept = work.kept_share_of_products(trace)
    multiplied = work.multiplied
    removed = (change_shortening_operators(trace, work.made, 0.0),) if work.made.height else ()
    times = max(part.repeats for one in work.products for part in one.parts)
    return Finding(
        title=f"A product multiplies rows that are repeated {times} times",
        where=where,
        count_per_step=len(work.products) / recorded_step_count(trace),
        claim=RemovalClaim(
            (change_shortening_operators(trace, multiplied, kept), *removed),
            worst_case_changes=(change_shortening_operators(trace, multiplied, (1 + kept) / 2),),
            largest_changes=(change_shortening_operators(trace, multiplied, 0.0), *removed),
        ),
        confidence="medium",
        semantics="numerics",
        evidence=(
            Evidence(
                "time in the products and their gradients",
                operator_ms_per_step(trace, multiplied),
                "ms",
                tuple(multiplied["id"].head(3).to_list()),
                multiplied["id"].to_numpy(),
            ),
            Evidence(
                "time in repeating and joining the rows",
                operator_ms_per_step(trace, work.made),
                "ms",
            ),
            Evidence("share of the products' time that remains", kept, "ratio"),
        ),
        fix=REPEAT_LAST_FIX if all(len(one.parts) == 1 for one in work.products) else SPLIT_FIX,
    )
