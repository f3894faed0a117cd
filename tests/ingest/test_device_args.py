import json
from pathlib import Path

from selftime import Trace, load


def event(category: str, name: str, start: int, pid: int, tid: int) -> dict[str, object]:
    args = {"correlation": 7, "External id": 3, "device": 0, "stream": 7}
    times = {"ts": start, "dur": 10, "pid": pid, "tid": tid}
    return {"ph": "X", "cat": category, "name": name, "args": args, **times}


def test_the_devices_copy_of_an_annotation_is_no_work(tmp_path: Path) -> None:
    """It spans the kernels launched within it, and would count them twice."""
    events = [
        event("cuda_runtime", "cudaLaunchKernel", 100, 1, 1),
        event("kernel", "gemm", 120, 0, 7),
        event("gpu_user_annotation", "forward", 119, 0, 7),
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    trace = load(path)
    assert isinstance(trace, Trace)
    names = trace.slices.join(trace.device_args, on="id")["name"].to_list()
    assert names == ["gemm"]
    assert trace.tracks["kind"].to_list() == ["host", "device annotation", "device"]
