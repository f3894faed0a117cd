"""Contains tests ("probes"), each of which checks in a child process what the machine can do.

`main` runs them and writes a line of JSON for each.
"""

import importlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

_FUNCTION_BY_PROBE: Final[Mapping[str, str]] = {
    "build": "read_torch_build",
    "host": "record_two_python_lines",
    "workers": "run_dataloader_workers",
    "devices": "list_torch_devices",
    "kernel": "record_one_kernel",
}
"""Maps each probe to the name of its function, in the module of the same name as the probe."""


def main(probe_names: Sequence[str]) -> None:
    """Runs the named tests and writes their answers to stdout; all other output goes to stderr."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        for probe_name in probe_names:
            answers.write(json.dumps({"stage": probe_name, **_run_probe(probe_name)}) + "\n")
            answers.flush()
    sys.stdout.flush()


def _run_probe(probe_name: str) -> dict[str, Any]:
    try:
        function = _FUNCTION_BY_PROBE[probe_name]
        module = importlib.import_module(f"{__name__}.{probe_name}")
        return {"answer": getattr(module, function)()}
    except Exception as error:  # noqa: BLE001 - the error is the result of the probe
        return {"error": f"{type(error).__name__}: {error}"}
