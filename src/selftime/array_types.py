"""Defines type aliases of NumPy arrays by the kind of their elements."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
"""Array of 64-bit integers: times in nanoseconds, ids, counts."""
SignedInts: TypeAlias = NDArray[np.signedinteger[Any]]
"""Array of signed integers of any width, such as indices into other arrays."""
Floats: TypeAlias = NDArray[np.float64]
"""Array of 64-bit floating-point numbers."""
Flags: TypeAlias = NDArray[np.bool_]
"""Array of booleans."""
