"""Section I of the catalogue: backends and devices."""

import json
from random import Random
from typing import Any

import polars as pl
from tests.ingest.rough.case import Event, case, document, json_text, kernel, launch, op
from tests.ingest.rough.missing import is_silent_on_devices
from tests.ingest.rough.program import COUNT, PROGRAM, every, linked, quiet

from selftime.trace import Trace


def of(how: dict[str, dict[str, Any]]) -> list[Event]:
    """The program with fields of some categories' events replaced."""
    return [{**event, **how.get(event["cat"], {})} for event in PROGRAM]


def busy_of(trace: Trace, device: int) -> float | None:
    rows = trace.view("overview").filter(
        (pl.col("device") == device) & (pl.col("metric") == "busy")
    )
    return rows["value"][0] if rows.height else None


def counts_stream_zero(trace: Trace) -> None:
    assert trace.device_args["stream"].unique().to_list() == [0]
    assert (busy_of(trace, 2) or 0) > 0
    assert linked(trace) == 0
    assert trace.device_args["bytes"].null_count() == 50


@case("52a", "limit", "launched before the recording or elsewhere", sound=COUNT,
      check=every(counts_stream_zero, quiet))  # fmt: skip
def rocm(_: Random) -> bytes:
    args = {"device": 2, "stream": 0, "kind": "Dispatch Kernel"}
    made = of({
        "kernel": {"pid": 2, "tid": 0, "args": args},
        "cuda_runtime": {"name": "hipLaunchKernel", "args": {"cid": 211}},
    })  # fmt: skip
    described = [{"id": 0, "name": "AMD Instinct MI300X", "numSms": 304, "warpSize": 64}]
    return document(made, deviceProperties=described, hip_runtime_version=60200)


def is_device_work(trace: Trace) -> None:
    assert linked(trace) == 50
    assert trace.view("kernels")["count"].sum() == 50
    assert (busy_of(trace, 0) or 0) > 0


@case("52b", "accept", sound=COUNT, check=is_device_work)
def xpu(_: Random) -> bytes:
    call = {"cat": "xpu_runtime", "name": "urEnqueueKernelLaunch"}
    return document(of({"cuda_runtime": call}), deviceProperties=[])


@case("52c", "accept", sound=COUNT, check=is_device_work)
def npu_with_times_as_text(_: Random) -> bytes:
    texts = [{**e, "ts": str(e["ts"]), "dur": str(e["dur"])} for e in PROGRAM]
    return document(texts, deviceProperties=[])


def on_mps(at: float) -> Event:
    args = {"Bytes": 64, "Addr": int(at), "Device Type": 13, "Device Id": 0}
    return {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 7,
            "tid": 7, "ts": at, "args": args}  # fmt: skip


@case("52d", "limit", "this backend records no device activity", "MPS", sound=21,
      check=every(is_silent_on_devices, quiet))  # fmt: skip
def mps(_: Random) -> bytes:
    return document([*(op(n) for n in range(20)), on_mps(1003)], deviceProperties=[])


@case("52e", "accept", sound=COUNT, check=is_device_work)
def mtia(_: Random) -> bytes:
    made = of({
        "cuda_runtime": {"cat": "mtia_runtime", "name": "run_kernel"},
        "kernel": {"cat": "mtia_ccp_events"},
    })  # fmt: skip
    return document(made, deviceProperties=[{"id": 0, "name": "ARTEMIS"}])


@case("52f", "recover", sound=COUNT - 1 + 1)
def tpu(_: Random) -> bytes:
    """A name with quotes that nobody escaped."""
    written = [json.dumps(event) for event in PROGRAM]
    named = 'custom-call, custom_call_target="tpu_custom_call"'
    written[-1] = written[-1].replace(PROGRAM[-1]["name"], named)
    return json_text(written)


def has_no_peak(trace: Trace) -> None:
    operators = trace.view("operators")
    told = [c for c in operators.columns if "efficiency" in c or "peak" in c]
    for column in told:
        assert operators[column].null_count() == operators.height, column


MIG = {
    "id": 0,
    "name": "NVIDIA A100-SXM4-80GB MIG 3g.40gb",
    "numSms": 42,
    "totalGlobalMem": 4 << 33,
}


@case("52g", "limit", "slices on host and device", sound=COUNT,
      check=every(has_no_peak, quiet))  # fmt: skip
def a_part_of_a_card(_: Random) -> bytes:
    return document(PROGRAM, deviceProperties=[MIG])


@case("52g", "limit", "slices on host and device", sound=COUNT,
      check=every(has_no_peak, quiet))  # fmt: skip
def a_part_of_a_card_by_its_size(_: Random) -> bytes:
    """Drivers give a part the whole card's name."""
    return document(PROGRAM, deviceProperties=[{**MIG, "name": "NVIDIA A100-SXM4-80GB"}])


def second(event: Event) -> Event:
    args = {**event["args"], "correlation": event["args"].get("correlation", -101) + 100}
    if event["cat"] != "kernel":
        return {**event, "tid": 8, "args": args}
    return {**event, "pid": 1, "args": {**args, "device": 1}}


TWICE = [e for event in PROGRAM if "Profiler" not in event["name"] for e in (event, second(event))]


def are_two(trace: Trace) -> None:
    table = trace.view("overlap")
    assert table["device"].to_list() == [0, 1]
    assert table["compute"].n_unique() == 1
    assert (table["compute"] + table["idle"] == table["window"]).all()
    assert (busy_of(trace, 0), busy_of(trace, 1)) == (busy_of(trace, 1), busy_of(trace, 0))
    assert 0 < (busy_of(trace, 0) or 0) <= 1


@case("52h", "accept", sound=len(TWICE), check=are_two)
def two_devices_of_one_process(_: Random) -> bytes:
    described = [{"id": n, "name": "NVIDIA H100", "numSms": 132} for n in range(2)]
    return document(TWICE, deviceProperties=described)


def is_seventeen(trace: Trace) -> None:
    assert trace.device_args["device"].unique().to_list() == [17]
    assert (busy_of(trace, 17) or 0) > 0


@case("52i", "accept", sound=3, check=is_seventeen)
def a_device_of_a_high_number(_: Random) -> bytes:
    args = {**kernel(0)["args"], "device": 17}
    return document([op(0), launch(0), kernel(0, pid=17, args=args)])


@case("52j", "limit", "slices on host and device", sound=COUNT,
      check=every(has_no_peak, quiet))  # fmt: skip
def a_device_that_nobody_knows(_: Random) -> bytes:
    return document(PROGRAM, deviceProperties=[{"id": 0, "name": "Unheard Of 9000"}])
