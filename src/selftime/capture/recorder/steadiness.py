"""Whether a program's steps have warmed up: seen from their durations alone."""

from collections.abc import Sequence
from typing import Final

FASTER: Final = 0.8
"""A step below this share of the shortest before it says that steps are still getting faster.

Caches that fill, kernels that are chosen and code that is compiled make a step many times longer
than those after it; a machine's noise makes the shortest of several steps hardly shorter.
"""

SLOWER: Final = 1.5
"""A step above this multiple of the shortest is no ordinary one: something was made in it, as a
graph is compiled anew for another shape."""

MOST_STEPS: Final = 20
"""Steps of a program that never gets steady, such as one whose inputs differ in length."""

MOST_SECONDS: Final = 30.0
"""Time after which nobody wants to wait for a better step."""


def is_steady(durations: Sequence[int]) -> bool:
    """Whether recording may begin after these steps, in nanoseconds, of which none was recorded.

    The newest is compared with the shortest before it. A program is not waited for beyond
    `MOST_STEPS` and `MOST_SECONDS`.
    """
    if not durations:
        return False
    if len(durations) >= MOST_STEPS or sum(durations) >= MOST_SECONDS * 1e9:
        return True
    *before, newest = durations
    if not before:
        return False
    return FASTER * min(before) <= newest <= SLOWER * min(before)
