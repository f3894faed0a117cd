"""Collects versions, machine, rank and command line of the process, to be stored in the trace.

docs/formats.md describes the format; its name and version are `FORMAT`.
"""

import hashlib
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
from selftime.capture.facts.batch_tensors import tensors_of_most_batches
from selftime.capture.facts.creation_sites import creation_facts
from selftime.capture.lines.sources import import_folders

FORMAT: Final = "selftime.facts/1"


def process_facts() -> dict[str, Any]:
    """Returns by name: versions, machine, rank, command line and paths of this process."""
    rank, world = machine.rank_and_world()
    return {
        "format": FORMAT,
        "version": __version__,
        "torch": str(torch.__version__),
        "cuda": _cuda_or_hip_version(torch.version),
        "python": platform.python_version(),
        "host": socket.gethostname(),
        "boot": _name_of_boot(),
        "pid": os.getpid(),
        "rank": rank,
        "world_size": world,
        "argv": _command_line(),
        "cwd": _working_directory(),
        "paths": import_folders(),
        "devices": machine.visible_devices(),
        "threads": torch.get_num_threads(),
        "cores": machine.usable_core_counts(),
        "processor": machine.processor_name(),
        "created": creation_facts(),
        "batch_tensors": tensors_of_most_batches(),
    }


def _name_of_boot() -> str | None:
    """Returns a name of the machine's running kernel, whose clock all its processes read."""
    try:
        told = Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    except OSError:  # another system than Linux
        return None
    return hashlib.blake2b(told, digest_size=8).hexdigest()


def _command_line() -> list[str] | None:
    """Returns the program's command line; None if the program deleted or replaced `sys.argv`."""
    arguments = getattr(sys, "argv", None)
    if not isinstance(arguments, list | tuple):
        return None
    return [str(argument) for argument in arguments]


def _working_directory() -> str | None:
    try:
        return str(Path.cwd())
    except OSError:  # the program removed its working directory, or may not read it
        return None


def _cuda_or_hip_version(version: Any) -> str | None:
    versions: Mapping[str, Any] = vars(version)
    found = versions.get("cuda") or versions.get("hip")
    return None if found is None else str(found)
