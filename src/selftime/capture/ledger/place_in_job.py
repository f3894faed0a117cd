"""Tells which rank of which job this process is, without an import of torch."""

import os
import sys
from hashlib import blake2b
from typing import Any, Final

_VARIABLES_OF_JOB: Final = (
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
)
"""Environment variables that are the same in all processes of a job, and mostly another in the
next."""


def place_in_job() -> dict[str, Any]:
    """Returns `rank`, `world` (the number of ranks) and `job` (a digest) as far as they are known.

    The process group of the program tells them, or before it is there a launcher's environment.
    """
    numbers = _of_process_group() or {
        name: int(told)
        for name, variable in (("rank", "RANK"), ("world", "WORLD_SIZE"))
        if (told := os.environ.get(variable, "")).isascii() and told.isdigit()
    }
    job = _job_digest()
    return numbers if job is None else {**numbers, "job": job}


def _of_process_group() -> dict[str, int] | None:
    distributed: Any = sys.modules.get("torch.distributed")
    is_initialized = getattr(distributed, "is_initialized", None)  # while it is being imported
    if is_initialized is None or not is_initialized():
        return None
    return {"rank": distributed.get_rank(), "world": distributed.get_world_size()}


def _job_digest() -> str | None:
    if not os.environ.get("MASTER_PORT"):
        return None
    told = "\0".join(os.environ.get(name, "") for name in _VARIABLES_OF_JOB)
    return blake2b(os.fsencode(told), digest_size=8).hexdigest()
