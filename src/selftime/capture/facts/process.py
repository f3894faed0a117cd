"""The facts that a recording leaves in its trace, under the top-level key `selftime`.

The format is described in docs/formats.md; its name and version are `FORMAT`.
"""

import os
import platform
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch

from selftime._version import __version__
from selftime.capture.facts import machine
from selftime.capture.lines.sources import path_prefixes

FORMAT: Final = "selftime.facts/1"


def process_facts() -> dict[str, Any]:
    """What holds for the whole process: versions, machine, rank, command, paths."""
    rank, world = machine.rank_and_world()
    return {
        "format": FORMAT,
        "version": __version__,
        "torch": str(torch.__version__),
        "cuda": _accelerator_version(torch.version),
        "python": platform.python_version(),
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "rank": rank,
        "world_size": world,
        "argv": _words(),
        "cwd": _folder(),
        "paths": path_prefixes(),
        "devices": machine.devices(),
        "threads": torch.get_num_threads(),
        "cores": machine.cores(),
    }


def _words() -> list[str] | None:
    """The command's words, if the program has left them."""
    words = getattr(sys, "argv", None)
    return [str(word) for word in words] if isinstance(words, list | tuple) else None


def _folder() -> str | None:
    try:
        return str(Path.cwd())
    except OSError:  # the program removed the folder that it works in, or may not see it
        return None


def _accelerator_version(version: Any) -> str | None:
    versions: Mapping[str, Any] = vars(version)
    found = versions.get("cuda") or versions.get("hip")
    return None if found is None else str(found)
