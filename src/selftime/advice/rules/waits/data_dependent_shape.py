"""The shape of a tensor depends on what the device computes.

## What it means
`x[mask]`, `x.nonzero()`, `torch.where(mask)`, `torch.unique`, `bincount`, `one_hot` without the
number of classes, `repeat_interleave` without an output size: how large their result is, only the
data tell. The host waits for it in order to allocate. `x[mask]` waits once more in the backward
pass.

## Why it costs
The queue of the device runs empty while the host waits for the size, and the device stands idle
until work comes again. Sizes that change also keep the program from CUDA graphs and the allocator
from reuse.

## What to do
Keep the shape: multiply by the mask, `masked_fill`, `torch.where` with three arguments,
`ignore_index=` of a loss. Tell the size where it is known: `one_hot(x, k)`, `repeat_interleave(x,
t, output_size=n)`, `nonzero_static(x, size=n)`. Whether there are two different values tells
`x.amin() != x.amax()`, without sorting.

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

from selftime.advice.base import Fix, Outcome, rule
from selftime.advice.detectors.wait_savings import Advised, found_at
from selftime.advice.detectors.wait_sites import Site
from selftime.names.waits import shape_operator
from selftime.trace import Trace

REPEATED: Final = 4
"""From so many waits a step at one line on it stands in a layer or a loop: shapes are ragged."""

_FIXES: Final = {
    "B5": (
        "Use the mask itself in place of the positions.",
        "y = torch.where(mask, a, b)   # for: index = mask.nonzero()",
    ),
    "B6": (
        "Keep the shape, and let the mask weigh the elements.",
        "loss = (loss_each * mask).sum() / mask.sum()   # for: loss_each[mask].mean()",
    ),
    "B7": (
        "Tell the size, or ask for what you want without it.",
        """y = F.one_hot(x, num_classes)                          # the size is told
y = torch.repeat_interleave(x, times, output_size=n)
has_two = x.amin() != x.amax()                         # for: len(x.unique()) > 1""",
    ),
}
"""By entry of the catalogue."""


@rule(covers=("B5", "B6", "B7", "B13"))
def check(trace: Trace) -> Iterator[Outcome]:
    yield from found_at(trace, ("data_dependent_shape",), _advised)


def _advised(site: Site) -> Advised:
    name, entry = shape_operator(site.operators) or (site.name, "B5")
    covers = (entry, "B13") if site.per_step >= REPEATED else (entry,)
    text, code = _FIXES[entry]
    return Advised(
        covers,
        f"The host waits for the size of a result at `{name}` in every step",
        Fix(text, code),
    )
