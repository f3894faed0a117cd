"""What runs in the child: each stage tries something out and answers with a line of JSON."""

import importlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

_STAGES: Final[Mapping[str, str]] = {
    "build": "selftime.capture.doctor.probes.build",
    "host": "selftime.capture.doctor.probes.host",
    "workers": "selftime.capture.doctor.probes.workers",
    "devices": "selftime.capture.doctor.probes.devices",
    "kernel": "selftime.capture.doctor.probes.kernel",
}
"""The module of each stage; its `answer()` imports PyTorch, which may fail."""


def main(stages: Sequence[str]) -> None:
    """Answer on stdout; whatever else writes there goes to stderr."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as told:
        os.dup2(2, 1)
        for stage in stages:
            told.write(json.dumps({"stage": stage, **_tried(stage)}) + "\n")
            told.flush()
    sys.stdout.flush()


def _tried(stage: str) -> dict[str, Any]:
    try:
        return {"answer": importlib.import_module(_STAGES[stage]).answer()}
    except Exception as error:  # noqa: BLE001 - it is what was found out
        return {"error": f"{type(error).__name__}: {error}"}
