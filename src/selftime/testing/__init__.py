"""Creates traces for tests and documentation from drawings in text, which are called sketches.

A line is a lane, a column is 10 us, a run of one letter is one slice. Lanes of the same name nest:

    mark 1   | ssssssssss        annotations on thread 1
    cpu 1    | aaaa bbbb         operators
    call 1   |  k    k           calls of the runtime
    python 1 | ffffffffff        Python frames
    gpu 7    |    kkk  kkk       work on stream 7: the n-th `k` is launched by the n-th `k` call
    gpu 1.7  |    kkk            the same on device 1; so do `copy`, `fill`, `sync` and `note`
    memory 1 | A   a             `A` is allocated, later released; each letter is a record

`copy` and `fill` are device work, `sync` the device's records of waits, `note` device-side copies
of annotations, `overhead` the recorder's own slices. Lines with `=` say what letters stand for, and
`column = 1 ms` sets the scale:

    a = aten::mm; input_types = ["double", "double"]; line = train.py:12 step

Beside `line`, a legend can set every column of the tables of arguments. `forward = f` links the
n-th slice of a letter to the n-th of `f`; `launched_by = g` links it to the latest call `g`.
`facts = {"threads": 8}` sets the recording's facts on machine and settings, as JSON, and
`device = {"name": "NVIDIA A100"}` describes the next device: columns of the table `devices`.

Lines such as `run | 20 training 100 ms` draw the ledger of the run: see `run_sketches`.

Lines such as `rank 1` begin the lanes of another rank: `sketch_job` makes a job of them.

>>> sketch("cpu 1 | aa b").slices.select("name", "start", "duration").rows()
[('a', 0, 20000), ('b', 30000, 10000)]
"""

from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

from selftime.testing.job_sketches import sketch_job
from selftime.testing.trace_sketches import sketch

__all__ = ["GRADIENTS_OF_GRADIENTS", "Judge", "sketch", "sketch_job"]

FindingType = TypeVar("FindingType")
Judge: TypeAlias = Callable[[str], list[FindingType]]
"""A function that draws a trace from text, applies a rule to the trace, and returns the
findings."""

GRADIENTS_OF_GRADIENTS: Final = """
    cpu 2 | wwww yyyyy zzzz
    cpu 2 |      xxx
    w = aten::linear; sequence = 3; forward_thread = 0
    x = aten::mm; sequence = 4; forward_thread = 0
    y = autograd::engine::evaluate_function: AddmmBackward0; sequence = 3; forward_thread = 2
    z = autograd::engine::evaluate_function: MmBackward0; sequence = 4; forward_thread = 2; forward = x
"""  # noqa: E501 - what a letter stands for is on one line
"""Lines to add to a drawing: an operator of a backward pass is itself differentiated, which
`torch.compile` does not support."""
