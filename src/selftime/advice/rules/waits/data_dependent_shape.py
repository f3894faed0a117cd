"""The shape of a tensor depends on values that the device computes.

## What it means
`x[mask]`, `x.nonzero()`, `torch.where(mask)`, `torch.unique`, `bincount`, `one_hot` without the
number of classes, `repeat_interleave` without an output size: the size of their result depends on
the data. The host waits for it in order to allocate. `x[mask]` waits once more in the backward
pass.

In the trace: the host waits within one of these operators, such as `aten::nonzero` or
`aten::_unique2`, on the same line in more than half of the steps.

## Why it costs
The queue of the device runs empty while the host waits for the size, and the device stands idle
until work comes again. Sizes that change also keep the program from CUDA graphs and the allocator
from reuse.

## What to do
Keep the shape: multiply by the mask, `masked_fill`, `torch.where` with three arguments,
`ignore_index=` of a loss. Pass the size where it is known: `one_hot(x, k)`, `repeat_interleave(x,
t, output_size=n)`, `nonzero_static(x, size=n)`. `x.amin() != x.amax()`
says whether there are two different values, without sorting.

The estimate replays the step without these waits: it is the mean of the savings if they alone are
removed, and if all other waits are removed first.

## Fires on
A mask selects elements.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | aiiiiiiiii          aiiiiiiiii          aiiiiiiiii
    cpu 1  |  nnnnnnnnn           nnnnnnnnn           nnnnnnnnn
    call 1 | kmmmmmmmmm          kmmmmmmmmm          kmmmmmmmmm
    gpu 7  |  kkkkkkkk            kkkkkkkk            kkkkkkkk
    copy 7 |          m                   m                   m
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    i = aten::index; line = loss.py:26 forward
    n = aten::nonzero
    m = Memcpy DtoH (Device -> Pageable)

## Silent on
A wait while the device has work on another stream: nothing stands idle, so it is free.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | abiii               abiii               abiii
    cpu 1  |   nnn                 nnn                 nnn
    call 1 | knmmm               knmmm               knmmm
    gpu 7  |  kknnnnnnnnnnnnnnnnnnkknnnnnnnnnnnnnnnnnnkknnnnnnnnnnnnnnnnnn
    copy 20|     m                   m                   m
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    b = aten::mm
    i = aten::index; line = loss.py:26 forward
    n = aten::nonzero
    m = Memcpy DtoH (Device -> Pageable)
"""

from collections.abc import Iterator
from typing import Final

from selftime.advice.detectors.wait_savings import WaitSiteAdvice, outcomes_of_waiting_lines
from selftime.advice.detectors.wait_sites import WaitSite
from selftime.advice.rule_definition import Fix, Outcome, rule
from selftime.names.wait_causes import data_dependent_shape_operator
from selftime.trace import Trace

MIN_WAITS_PER_STEP_OF_REPEATED_LINE: Final = 4
"""Smallest number of waits per step from which a line counts as part of a layer or loop."""

_FIX_TEXT_AND_CODE_BY_BOTTLENECK_CODE: Final = {
    "B5": (
        "Use the mask itself instead of the indices of its true elements.",
        "y = torch.where(mask, a, b)   # for: index = mask.nonzero()",
    ),
    "B6": (
        "Keep the shape of the tensor, and multiply its elements by the mask.",
        "# for: loss_each[mask].mean()\nloss = (loss_each * mask).sum() / mask.sum()",
    ),
    "B7": (
        "Pass the size of the result, or compute what you need without that size.",
        """y = F.one_hot(x, num_classes)   # the size is given
y = torch.repeat_interleave(x, times, output_size=n)
has_two = x.amin() != x.amax()  # for: len(x.unique()) > 1""",
    ),
}
"""Text and example code of the fix, by the bottleneck's code in the catalogue."""


@rule(covers=("B5", "B6", "B7", "B13"))
def check(trace: Trace) -> Iterator[Outcome]:
    yield from outcomes_of_waiting_lines(
        trace, ("data_dependent_shape",), _advice_for_data_dependent_shape
    )


def _advice_for_data_dependent_shape(wait_site: WaitSite) -> WaitSiteAdvice:
    name, entry = data_dependent_shape_operator(wait_site.operators) or (wait_site.name, "B5")
    covers = (
        (entry, "B13")
        if wait_site.waits_per_step >= MIN_WAITS_PER_STEP_OF_REPEATED_LINE
        else (entry,)
    )
    text, code = _FIX_TEXT_AND_CODE_BY_BOTTLENECK_CODE[entry]
    return WaitSiteAdvice(
        covers,
        f"The host waits for the size of a result at `{name}` in every step",
        Fix(text, code),
    )
