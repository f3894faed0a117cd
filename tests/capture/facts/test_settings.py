import math
import threading
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import selftime  # noqa: E402 - torch is looked for first
from selftime.capture import Profile  # noqa: E402 - likewise
from selftime.capture.facts.settings import DenormalDetector, flushes_denormals, pytorch_settings  # noqa: E402 - likewise

pytestmark = pytest.mark.torch

told = pytest.mark.skipif(flushes_denormals() is None, reason="the processor is not asked here")


def recorded(value: float, factor: float = 2.0) -> dict[str, object]:
    numbers = torch.full((64,), value)
    with Profile() as prof:
        numbers * factor  # not a square root: MKL keeps the flag of that to itself
    found: dict[str, object] = prof.facts()["settings"]
    return found


def test_settings_are_those_of_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    found = pytorch_settings()
    torch.set_float32_matmul_precision(before)

    assert found["threads"] == torch.get_num_threads()
    assert found["interop_threads"] == torch.get_num_interop_threads()
    assert found["environment"]["OMP_NUM_THREADS"] == "3"
    assert found["environment"]["MKL_NUM_THREADS"] is None
    assert found["float32_matmul_precision"] == "medium"
    assert found["anomaly_mode"] is False
    assert found["deterministic_algorithms"] is False
    assert found["cpu_bfloat16"] in {"AMX", "AVX512_BF16", "", None}
    assert found["autocast"]["cpu"] == ""


def test_autocast_is_told_by_its_dtype() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        assert pytorch_settings()["autocast"]["cpu"] == "bfloat16"


def test_no_device_is_set_up_to_be_asked() -> None:
    was = torch.cuda.is_initialized()
    mode = pytorch_settings()["sync_debug_mode"]
    assert torch.cuda.is_initialized() == was
    assert was or mode is None


def test_what_pytorch_does_not_tell_is_null(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.backends.cpu, "get_cpu_capability")
    assert pytorch_settings()["cpu_capability"] is None


def test_settings_are_in_the_trace(tmp_path: Path) -> None:
    with Profile() as prof:
        torch.ones(4).sum()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = selftime.load(tmp_path / "trace.json")
    assert isinstance(trace, selftime.Trace)
    assert trace.facts["settings"] == prof.facts()["settings"]


@told
def test_denormal_operands_are_remembered() -> None:
    assert recorded(1e-39)["denormals"] is True
    assert recorded(1.0)["denormals"] is False  # and those before it are forgotten


@told
def test_denormal_results_are_remembered() -> None:
    assert recorded(1.1e-20, factor=1.1e-20)["denormals"] is True


@told
@pytest.mark.parametrize(("value", "factor"), [(1e-39, 2.0), (1.1e-20, 1.1e-20)])
def test_flushed_denormals_are_told(value: float, factor: float) -> None:
    torch.set_flush_denormal(True)
    try:
        found = recorded(value, factor)
    finally:
        torch.set_flush_denormal(False)
    assert found["flush_denormals"] is True
    assert found["denormals"] is False
    assert flushes_denormals() is False


@told
def test_watching_changes_no_arithmetic() -> None:
    watch = DenormalDetector()
    watch.start_watching()
    assert math.ldexp(1.0, -1074) > 0
    assert watch.has_detected_denormals() is not None


@told
def test_another_thread_is_not_judged() -> None:
    watch = DenormalDetector()
    watch.start_watching()
    answers: list[bool | None] = []
    thread = threading.Thread(target=lambda: answers.append(watch.has_detected_denormals()))
    thread.start()
    thread.join()
    assert answers == [None]
