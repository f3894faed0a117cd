"""Types of NumPy arrays, named by what their elements are."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
"""Times in nanoseconds, ids, counts."""
SignedInts: TypeAlias = NDArray[np.signedinteger[Any]]
"""Whole numbers of any width: places in other arrays."""
Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
