"""The sentences of `selftime cut` on what it changed."""

from pathlib import Path

from tests.cli.small_traces import say, write


def test_events_that_are_clipped_are_counted(tmp_path: Path) -> None:
    frame = {"ph": "X", "cat": "python_function", "pid": 1, "tid": 1, "ts": 0, "dur": 90}
    frames = [{**frame, "name": f"train.py({n}): f", "args": {"Python id": n}} for n in (1, 2)]
    inner = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 20, "dur": 9}
    for count, told in (
        (1, "1 event that extends beyond it is clipped"),
        (2, "2 events that extend beyond it are clipped"),
    ):
        trace = write(tmp_path / f"{count}.json", [*frames[:count], inner])
        done = say("cut", str(trace), "--time", "10us:50us", "-o", str(tmp_path / "cut.json"))
        assert done.exit_code == 0, done.output
        assert told in done.output
