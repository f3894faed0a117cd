"""What a step on a CPU would take on a GPU, by the work of its operators."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from selftime.advice.what_if import estimate_on_device
from selftime.advice.what_if.prediction import predictions_as_json
from selftime.cli import app
from selftime.errors import UnreadableTrace, UsageError
from selftime.reports.schemas import schema
from selftime.testing import sketch

ON_CPU = """
    column = 10 ms
    facts = {"threads": 1, "overhead": {"ratio": 1.0}}
    mark 1 | sssssssssstttttttttt
    cpu 1  | aaaaaaaab aaaaaaaab
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::mm; input_shapes = [[2048, 2048], [2048, 2048]]; input_types = ["float", "float"]
    b = aten::relu; input_shapes = [[4096, 4096]]; input_types = ["float"]
"""


def test_an_empty_trace_has_no_step_to_estimate() -> None:
    with pytest.raises(UnreadableTrace, match="does not tell the work of operators in a step"):
        estimate_on_device(sketch(""), "A100")


def test_the_interval_holds_device_host_and_what_they_take_together() -> None:
    found = estimate_on_device(sketch(ON_CPU), "A100-SXM4-40GB")
    assert found.step_ms == 100.0
    assert found.modelled_share == 1.0
    assert found.launches == 2.0
    # 17.2 GFLOP at half of 19.5 TFLOP/s, 134 MB at half of 1,555 GB/s, and 6 us for each operator
    assert found.device.ms == pytest.approx(1.762 + 0.173 + 0.012, rel=1e-3)
    # 80 % of TF32 on tensor cores; a fifth of float32
    assert found.device.low_ms == pytest.approx(0.1377 + 0.1079 + 0.003, rel=1e-3)
    assert found.device.high_ms == pytest.approx(4.405 + 0.4315 + 0.032, rel=1e-3)
    assert found.host.low_ms == pytest.approx(10.008)  # 10 ms are no operator
    assert found.step.ms == max(found.device.ms, found.host.ms)
    assert found.step.high_ms == found.device.high_ms + found.host.high_ms
    assert found.step.low_ms <= found.step.ms <= found.step.high_ms


def test_the_beginning_of_a_name_stands_for_all_such_devices() -> None:
    found = estimate_on_device(sketch(ON_CPU), "a100")
    assert len(found.devices) == 4
    one = estimate_on_device(sketch(ON_CPU), "A100-SXM4-40GB")
    assert found.device.low_ms <= one.device.low_ms
    assert found.device.high_ms >= one.device.high_ms


def test_time_without_a_model_stays_at_most() -> None:
    unknown = ON_CPU.replace("b = aten::relu; input", "b = aten::nothing; input")
    found = estimate_on_device(sketch(unknown), "A100-SXM4-40GB")
    assert found.modelled_share == pytest.approx(160 / 180)
    assert found.device.high_ms == pytest.approx(4.405 + 0.016 + 10.0, rel=1e-3)
    assert found.device.low_ms < 0.2


@pytest.mark.parametrize("device", ["", "   ", "Foo", "Voodoo 2"])
def test_an_unknown_device_is_an_error(device: str) -> None:
    with pytest.raises(UsageError, match="are not known; known are: A10, A100"):
        estimate_on_device(sketch(ON_CPU), device)


def test_a_trace_of_a_device_is_an_error() -> None:
    drawing = """
        mark 1 | ssss
        cpu 1  | aaaa
        call 1 | k
        gpu 7  |  kkk
        s = ProfilerStep#1
        a = aten::mm
    """
    with pytest.raises(UsageError, match="this trace has work of a device"):
        estimate_on_device(sketch(drawing), "A100")


def test_the_document_fits_its_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    document = json.loads(
        predictions_as_json({}, {"a.json": estimate_on_device(sketch(ON_CPU), "H100 80GB HBM3")})
    )
    jsonschema.validate(document, schema("what_if"))
    assert document["on_device"][0]["trace"] == "a.json"


def test_the_command_says_that_nothing_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SELFTIME_CACHE", str(tmp_path / "cache"))
    trace = tmp_path / "trace.json"
    events = [
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1,
         "ts": 0, "dur": 1000},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 900,
         "args": {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}},
    ]  # fmt: skip
    trace.write_text(json.dumps({"traceEvents": events}))
    done = CliRunner().invoke(app, ["what-if", str(trace), "--device", "A100"])
    assert done.exit_code == 0, done.output
    assert "On A100 80GB PCIe and 3 more" in done.stdout
    assert "not measured" in done.stdout
    assert "the work of 100 % of the operators' time" in " ".join(done.stdout.split())
