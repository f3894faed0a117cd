"""The type of the functions that are told how far a long piece of work is."""

from collections.abc import Callable
from typing import TypeAlias

ProgressCallback: TypeAlias = Callable[[int, int | None], None]
"""Called with (amount done, total) of bytes, files or rounds; the total is None if unknown."""
