import gc
import inspect
import json
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch")

from selftime import capture as selftime  # noqa: E402 - the import that a tutorial's reader changes
from selftime.errors import RecordingError, UsageError  # noqa: E402 - likewise

if TYPE_CHECKING:
    from tests.capture.conftest import ReadTrace

pytestmark = [
    pytest.mark.torch,
    # torch says so once a process, at the second cycle of any profiler.
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"),
]


def work() -> None:
    rows = torch.randn(8, 8, requires_grad=True)
    (rows @ rows).sum().backward()


def test_every_argument_of_torchs_profiler_is_taken() -> None:
    torchs = inspect.signature(torch.profiler.profile)

    assert inspect.signature(selftime.Profile) == torchs
    defaults = {name: p.default for name, p in torchs.parameters.items() if name != "use_cuda"}
    with selftime.Profile(**defaults):
        work()


def test_every_method_of_torchs_profiler_is_there() -> None:
    for name in dir(torch.profiler.profile):
        assert hasattr(selftime.Profile, name)


def test_a_tutorials_code_runs_with_its_import_changed(
    tmp_path: Path, read_trace: "ReadTrace"
) -> None:
    with selftime.Profile(
        activities=[selftime.ProfilerActivity.CPU],
        schedule=selftime.schedule(wait=1, warmup=1, active=2, repeat=2),
        on_trace_ready=selftime.tensorboard_trace_handler(str(tmp_path)),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
    ) as prof:
        for _ in range(8):
            with selftime.record_function("model"):
                work()
            prof.step()
    prof.key_averages(group_by_input_shape=True).table(sort_by="self_cpu_time_total", row_limit=5)

    one, two = (read_trace(path) for path in sorted(tmp_path.glob("*.pt.trace.json")))
    for trace in (one, two):
        rows = [e for e in trace["traceEvents"] if e["name"] == "model" and e["ph"] == "X"]
        assert len(rows) == 2
        assert set(trace["selftime"]["lines"]["id"]) >= {row["args"]["External id"] for row in rows}


def test_the_callback_gets_our_profiler_and_may_write(tmp_path: Path) -> None:
    ready: list[Any] = []

    def write(prof: Any) -> None:
        ready.append(prof)
        prof.export_chrome_trace(str(tmp_path / f"{prof.step_num}.json"))

    plan = selftime.schedule(wait=0, warmup=1, active=1, repeat=2)
    with selftime.Profile(schedule=plan, on_trace_ready=write) as prof:
        for _ in range(4):
            work()
            prof.step()

    assert ready == [prof, prof]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2.json", "4.json"]


def test_a_trace_is_written_as_often_as_wanted(tmp_path: Path, read_trace: "ReadTrace") -> None:
    with selftime.Profile(with_stack=True) as prof:
        work()
    prof.write_trace(tmp_path / "one.json")
    prof.write_trace(tmp_path / "two.json.gz")
    prof.export_chrome_trace(str(tmp_path / "two.json.gz"))
    one, two = read_trace(tmp_path / "one.json"), read_trace(tmp_path / "two.json.gz")

    assert one.pop("traceName") == str(tmp_path / "one.json")
    assert two.pop("traceName") == str(tmp_path / "two.json.gz")
    assert one == two
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.json", "two.json.gz"]


def test_the_streaming_writer_keeps_the_facts(tmp_path: Path, read_trace: "ReadTrace") -> None:
    with selftime.Profile() as prof:
        work()
    prof.export_chrome_trace(str(tmp_path / "trace.json"), use_python_export=True)

    assert read_trace(tmp_path / "trace.json")["selftime"]["format"] == "selftime.facts/1"


def test_metadata_is_kept(tmp_path: Path, read_trace: "ReadTrace") -> None:
    prof = selftime.Profile()
    prof.preset_metadata_json("before", json.dumps({"a": 1}))
    with prof:
        work()
        prof.add_metadata("name", "value")
        prof.add_metadata_json("number", "3")
    prof.write_trace(tmp_path / "trace.json")
    trace = read_trace(tmp_path / "trace.json")

    assert (trace["before"], trace["name"], trace["number"]) == ({"a": 1}, "value", 3)


def test_the_temporary_copy_goes_with_the_profiler(tmp_path: Path) -> None:
    with selftime.Profile() as prof:
        work()
    prof.write_trace(tmp_path / "trace.json")
    copy = prof._recording.json_file
    assert copy is not None
    assert copy.exists()
    del prof
    gc.collect()

    assert not copy.parent.exists()


def test_the_handler_never_writes_over_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 1)
    handler = selftime.tensorboard_trace_handler(str(tmp_path / "new"), "worker", use_gzip=True)
    with selftime.Profile() as prof:
        work()
    handler(prof)
    handler(prof)

    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "worker-1.1.pt.trace.json.gz",
        "worker.1.pt.trace.json.gz",
    ]


def test_the_handlers_signature_is_torchs() -> None:
    ours = inspect.signature(selftime.tensorboard_trace_handler)
    torchs = inspect.signature(torch.profiler.tensorboard_trace_handler)

    assert list(ours.parameters) == list(torchs.parameters)


def test_stacks_are_written_root_first_in_nanoseconds(tmp_path: Path) -> None:
    with selftime.Profile(with_stack=True) as prof:
        work()
    prof.export_stacks(str(tmp_path / "stacks.txt"))
    lines = (tmp_path / "stacks.txt").read_text().splitlines()
    events = [e for e in prof.recorded_events() if not e.is_python_function()]
    longest = max(event.end_ns() for event in events) - min(event.start_ns() for event in events)

    assert 0 < sum(int(line.rpartition(" ")[2]) for line in lines) <= longest
    innermost = [line.rpartition(" ")[0].split(";") for line in lines]
    (randn,) = [frames for frames in innermost if "randn" in frames[-1]]
    assert "test_profile.py" in randn[-2]
    assert randn[-2].endswith("work")


def test_stacks_need_stacks_and_a_known_metric(tmp_path: Path) -> None:
    with selftime.Profile() as prof:
        work()
    with pytest.raises(RecordingError, match="with_stack=True"):
        prof.export_stacks(str(tmp_path / "stacks.txt"))
    with pytest.raises(UsageError, match="choose one of self_cpu_time_total"):
        prof.export_stacks(str(tmp_path / "stacks.txt"), "time")


def test_an_empty_file_of_stacks_is_not_written_silently(tmp_path: Path) -> None:
    with selftime.Profile(with_stack=True) as prof:
        work()
    with pytest.warns(UserWarning, match="has `self_xpu_time_total`: .* is empty"):
        prof.export_stacks(str(tmp_path / "stacks.txt"), "self_xpu_time_total")
    assert (tmp_path / "stacks.txt").read_text() == ""


def test_stacks_that_cannot_be_written_are_said_in_a_sentence(tmp_path: Path) -> None:
    with selftime.Profile(with_stack=True) as prof:
        work()
    with pytest.raises(RecordingError, match="cannot be written: Is a directory; choose another"):
        prof.export_stacks(str(tmp_path))


def test_what_cannot_be_written_is_said_in_a_sentence(tmp_path: Path) -> None:
    prof = selftime.Profile()
    with pytest.raises(RecordingError, match="nothing has been recorded"):
        prof.write_trace(tmp_path / "trace.json")
    with prof:
        work()
    with pytest.raises(RecordingError, match="does not exist; create it"):
        prof.write_trace(tmp_path / "none" / "trace.json")
    with pytest.raises(RecordingError, match="not a local path"):
        prof.write_trace("s3://bucket/trace.json")
    assert list(tmp_path.iterdir()) == []


def test_modules_without_stacks_turn_stacks_on_and_say_so() -> None:
    with pytest.warns(UserWarning, match="pass with_stack=True"):
        prof = selftime.Profile(with_modules=True)
    assert prof.with_stack


def test_a_schedule_that_never_records_says_why() -> None:
    plan = selftime.schedule(wait=5, warmup=1, active=1)
    with (
        pytest.warns(UserWarning, match=r"prof\.step\(\) was never called"),
        selftime.Profile(schedule=plan),
    ):
        work()
    prof = selftime.Profile(schedule=plan)
    prof.__enter__()  # type: ignore[no-untyped-call]  # torch
    prof.step()
    prof.step()
    with pytest.warns(UserWarning, match="still waiting after 2 calls"):
        prof.__exit__(None, None, None)


def test_an_exception_marks_the_trace_as_partial(tmp_path: Path, read_trace: "ReadTrace") -> None:
    def write(prof: Any) -> None:
        prof.write_trace(tmp_path / "trace.json")

    with pytest.raises(RuntimeError), selftime.Profile(on_trace_ready=write):
        torch.ones(2, 3) @ torch.ones(2, 3)

    assert read_trace(tmp_path / "trace.json")["selftime"]["partial"] == "ended by RuntimeError"


def test_many_recordings_leave_no_tensors_and_no_files(tmp_path: Path) -> None:
    held = []
    for number in range(5):
        rows = torch.randn(8, 8)
        with selftime.Profile(with_stack=True, record_shapes=True) as prof:
            rows.sum()
        prof.write_trace(tmp_path / f"{number}.json")
        held.append((weakref.ref(rows), prof._recording.json_file))
    del rows, prof
    gc.collect()

    assert all(rows() is None for rows, _ in held)
    assert not any(json_file is not None and json_file.exists() for _, json_file in held)


def test_a_second_recording_is_the_one_that_is_written(
    tmp_path: Path, read_trace: "ReadTrace"
) -> None:
    prof = selftime.Profile(with_stack=True)
    for name, size in (("one", 4), ("two", 6)):
        prof.start()
        torch.ones(size).sum()
        prof.stop()
        prof.write_trace(tmp_path / f"{name}.json")
    one, two = (read_trace(tmp_path / f"{name}.json") for name in ("one", "two"))

    assert one["trace_id"] != two["trace_id"]
    assert two["selftime"]["lines"]["id"]
