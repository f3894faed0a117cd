"""Where in the program something is called from, as one number."""

import os
import sys
from typing import Final

import torch

DEEP: Final = 16
"""Frames that are looked at: a loop's calls share all of them, and more would only take longer."""

TORCH: Final = os.path.dirname(torch.__file__) + os.sep  # noqa: PTH120 - compared with names of files


def call_path(above: int = 1) -> int:
    """The positions in all frames from the one `above` ours: the same for each round of a loop."""
    frame = sys._getframe(above + 1)  # noqa: SLF001 - the documented way to the caller
    path = 0
    for _ in range(DEEP):
        path = hash((path, id(frame.f_code), frame.f_lasti))
        if frame.f_back is None:
            break
        frame = frame.f_back
    return path


def call_site(above: int = 1) -> int:
    """The position in the nearest frame, from the one `above` ours, that is no part of torch."""
    frame = sys._getframe(above + 1)  # noqa: SLF001 - as above
    while frame.f_back is not None and frame.f_code.co_filename.startswith(TORCH):
        frame = frame.f_back
    return hash((id(frame.f_code), frame.f_lasti))
