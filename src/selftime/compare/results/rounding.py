"""Says how far rounding may move a program's results, by the precision that it computes in.

The error of a sum of n terms is about the root of n times the unit roundoff u, where the roundings
are independent (Higham and Mary, SIAM J. Sci. Comput. 41, 2019), and that of a chain of operations
likewise in their number. Half-precision formats are summed in single precision, so that their own u
counts once for an operator, not for each term.

What one step of training rounds otherwise, the next ones start from, and no bound holds for all
programs. Adam divides a gradient by its own size: where that is nothing but rounding, such as of a
bias before a normalization, the sign of the update is rounding, too. In `examples/digits` the loss
of the first round differs by 1e-7 between double and single precision, that of the third by 3e-4,
and that of the fifth by 2e-3. So a change of precision is judged closely in the first round, and
from the second on by the root of the roundoff, which doubles with each round; a change that leaves
the precision alone by the roundoff, which doubles likewise. Rounds in which a real difference would
be hidden are not judged.
"""

import json
from math import sqrt
from typing import Any, Final

import polars as pl

from selftime.trace import Trace

UNIT_ROUNDOFF: Final = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "tf32": 2.0**-11,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
}
"""Largest relative error of rounding to each format; the rest of a dtype's name may follow."""
_DTYPES_OF_INPUT_TYPES: Final = {
    "double": "float64",
    "float": "float32",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
}
"""Dtypes by the names that a recording has for those of an operator's inputs."""
_SUMMED_IN_SINGLE: Final = frozenset({"tf32", "float16", "bfloat16"})

_ROUNDOFFS_OF_ANOTHER_ORDER: Final = 16.0
"""Units of roundoff by which another order of the same sums may move a result."""
_ROUNDOFFS_OF_ROUNDED_RESULT: Final = 2.0
"""Units of roundoff by which results differ that are rounded to few bits once, at the end."""
_ROOT_OF_TERMS: Final = 64.0
"""Root of the number of terms of the longest usual sums, 4,096."""
_ROOT_OF_OPERATORS: Final = 8.0
"""Root of the number of operators in a chain, 64."""
_GROWTH_PER_ROUND: Final = 2.0
_MAX_DOUBLINGS: Final = 64
MAX_TOLERANCE: Final = 0.1
"""Relative difference from which a tolerance would hide what matters; later rounds are not
judged."""


def computing_format(trace: Trace, dtypes: set[str]) -> str | None:
    """Returns the coarsest format that a program computed in; None if none is known.

    Args:
        trace: A recording of the program, which may have the dtypes of operators' inputs.
        dtypes: Dtypes of its results.
    """
    found = {dtype for dtype in dtypes if dtype in UNIT_ROUNDOFF}
    told = trace.op_args["input_types"].cast(pl.String).drop_nulls().unique()
    for text in told.to_list():
        found |= _dtypes_in_text(text)
    if "float32" in found and trace.devices.height and _allows_tf32(trace):
        found.add("tf32")
    return max(found, key=UNIT_ROUNDOFF.__getitem__, default=None)


def tolerance(precision: str, number: int, *, is_neutral: bool) -> float:
    """Returns the relative difference that rounding may make in a round.

    Args:
        precision: The coarsest format that either program computes in.
        number: The number of rounds since the last of those with which both programs began, and in
            which both were equal to the last bit.
        is_neutral: Whether the change leaves the operations as they are, up to their order.
    """
    roundoff = UNIT_ROUNDOFF[precision]
    of_sums = UNIT_ROUNDOFF["float32"] if precision in _SUMMED_IN_SINGLE else roundoff
    growth = _GROWTH_PER_ROUND ** min(number, _MAX_DOUBLINGS)
    if is_neutral:
        of_results = _ROUNDOFFS_OF_ROUNDED_RESULT * roundoff
        return growth * (of_results + _ROUNDOFFS_OF_ANOTHER_ORDER * of_sums)
    if number:
        return growth * _ROOT_OF_OPERATORS * sqrt(roundoff) / _GROWTH_PER_ROUND
    return _ROOT_OF_OPERATORS * roundoff + _ROOT_OF_TERMS * of_sums


def _dtypes_in_text(text: str) -> set[str]:
    try:
        told: Any = json.loads(text)
    except ValueError:
        return set()
    names = {name for name in told if isinstance(name, str)} if isinstance(told, list) else set()
    return {_DTYPES_OF_INPUT_TYPES[name] for name in names if name in _DTYPES_OF_INPUT_TYPES}


def _allows_tf32(trace: Trace) -> bool:
    settings = trace.facts.get("settings")
    told = settings if isinstance(settings, dict) else {}
    return told.get("cuda_matmul_allow_tf32") is True or told.get("cudnn_allow_tf32") is True
