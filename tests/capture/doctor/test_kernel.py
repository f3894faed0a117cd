"""What is read of a recorded kernel, and on a GPU the whole of it."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from selftime.capture.doctor import probe_process  # noqa: E402 - the stage needs torch
from selftime.capture.doctor.probes import host, kernel, workers  # noqa: E402 - likewise

pytestmark = pytest.mark.torch

ROOT = Path(__file__).parents[3]
BASE = 1_700_000_000_000_000_000


def row(category: str, ts: float, correlation: int | None = None) -> dict[str, Any]:
    args = {} if correlation is None else {"correlation": correlation}
    return {"ph": "X", "name": category, "cat": category, "ts": ts, "dur": 1.0, "args": args}


def trace(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"baseTimeNanoseconds": BASE, "traceEvents": list(rows), **more}


def told(*rows: dict[str, Any]) -> dict[str, Any]:
    return kernel.summarize_kernel_trace(trace(*rows), BASE, BASE + 10_000)


def test_a_kernel_and_its_launch() -> None:
    found = told(row("cuda_runtime", 1.0, 7), row("kernel", 3.5, 7), row("cuda_runtime", 5.0, 8))

    assert (found["kernels"], found["launches"], found["linked"]) == (1, 2, 1)
    assert found["before_launch"] == 0
    assert found["clock_ok"]


def test_nothing_but_calls() -> None:
    found = told(row("cuda_runtime", 1.0, 7), row("cpu_op", 1.0))

    assert (found["kernels"], found["launches"]) == (0, 1)


@pytest.mark.parametrize("runtime", ["cuda_runtime", "cuda_driver", "hip_runtime", "xpu_runtime"])
def test_a_kernel_before_its_launch(runtime: str) -> None:
    assert told(row(runtime, 3.0, 7), row("kernel", 2.0, 7))["before_launch"] == 1


def test_a_kernel_at_another_time_and_without_a_launch() -> None:
    found = told(row("kernel", 11.0, 7))

    assert found["linked"] == 0
    assert not found["clock_ok"]


def test_versions_are_read() -> None:
    found = kernel.summarize_kernel_trace(trace(cupti_version=24, other_version=1), 0, 1)

    assert found["versions"] == {"cupti_version": 24}


@pytest.mark.traces
@pytest.mark.sweep
def test_real_devices_link_their_kernels() -> None:
    """Of NVIDIA and AMD, since the categories have their present names."""
    folder = Path(os.environ.get("SELFTIME_TRACES", ROOT.parent / "shared" / "traces"))
    if not folder.is_dir():
        pytest.skip(f"there are no real traces in {folder}; set SELFTIME_TRACES")
    seen = 0
    for path in sorted(folder.glob("**/*.json.gz")):
        if path.stat().st_size > 1_000_000:
            continue
        with gzip.open(path, "rb") as file:
            found = json.loads(file.read().replace(b": N/A", b": 0"))
        answer = kernel.summarize_kernel_trace(found, 0, 1 << 62)
        assert answer["before_launch"] == 0
        seen += answer["linked"] > 0
    assert seen > 3


@pytest.mark.sweep
def test_a_kernel_is_asked_of_a_build_for_devices_only() -> None:
    if torch.version.cuda or torch.version.hip or vars(torch.version).get("xpu"):
        pytest.skip("this PyTorch is built for a device")
    found = probe_process.run_probes(["devices", "kernel"], seconds=120)

    assert found.answer("devices") == {"kind": None, "count": 0, "names": [], "error": None}
    assert "supports no device" in (found.error("kernel") or "")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_this_machines_device_is_recorded() -> None:
    found = probe_process.run_probes(["devices", "kernel"], seconds=120)
    devices, recorded = found.answer("devices"), found.answer("kernel")

    assert devices is not None
    assert devices["count"] == torch.cuda.device_count()
    assert recorded is not None, found.error("kernel")
    assert recorded["kernels"] == recorded["linked"] >= 1
    assert recorded["before_launch"] == 0
    assert recorded["libraries"]


def test_two_lines_are_recorded_here() -> None:
    found = host.record_two_python_lines()

    assert {"aten::mul", "aten::add"} <= set(found["operators"])
    assert found["frames"] > 0
    assert found["lines"] == found["expected_lines"]


def test_workers_are_started_here() -> None:
    assert workers.run_dataloader_workers()["failed"] == {}
