"""What a watched logdir holds, when it changes, and when it cannot be read."""

import os
import time
from typing import TYPE_CHECKING, Any

import fsspec
import pytest

from selftime.tensorboard import logdir_watch as watching
from selftime.tensorboard.logdir_watch import LogdirWatch
from selftime.tensorboard.logdirs import Logdir

if TYPE_CHECKING:
    from tests.tensorboard.conftest import Logs

LONG = 60.0
"""No test waits so long: a look ends before."""


@pytest.fixture
def watch(logs: "Logs", monkeypatch: pytest.MonkeyPatch) -> LogdirWatch:
    """Looks whenever it is asked."""
    monkeypatch.setattr(watching, "_MIN_PAUSE_BETWEEN_SEARCHES_S", 0.01)
    monkeypatch.setattr(watching, "_MIN_PAUSE_BETWEEN_REMOTE_SEARCHES_S", 0.01)
    monkeypatch.setattr(watching, "_MIN_RATIO_OF_PAUSE_TO_SEARCH_TIME", 0)
    return LogdirWatch(Logdir(str(logs.root)))


def names(watch: LogdirWatch) -> list[str]:
    """What is found by a look that begins now, and by those that it calls for."""
    with watch._state:
        watch._state.wait_for(lambda: not watch._is_alive, LONG)
        watch._next_search = 0.0
    watch.request_search()
    with watch._state:
        assert watch._state.wait_for(lambda: not watch._is_alive, LONG)
    return [
        os.path.relpath(file.path, watch.logdir.path) for file in watch.found_traces(max_wait_s=0)
    ]


def test_nothing(watch: LogdirWatch, caplog: pytest.LogCaptureFixture) -> None:
    assert names(watch) == []
    assert names(LogdirWatch(Logdir("/there/is/none"))) == []
    assert caplog.text == ""


def test_by_name_and_by_beginning(watch: LogdirWatch, logs: "Logs") -> None:
    logs.write("a/x.1.pt.trace.json.gz")
    logs.write("b/any name.json.gz")
    logs.write("c/other.json", {"traceEvents": []})
    logs.write("d/plugins/profile/r/host.trace.json.gz", {"displayTimeUnit": "ns"})
    logs.write("e/list.json", [1])
    (logs.root / "f.json").write_bytes(b"\x1f\x8b damaged")
    (logs.root / "events.out.tfevents.1").write_bytes(b"x")

    assert names(watch) == ["a/x.1.pt.trace.json.gz", "b/any name.json.gz"]


def test_what_begins_otherwise_is_read_once(
    watch: LogdirWatch, logs: "Logs", monkeypatch: pytest.MonkeyPatch
) -> None:
    path = logs.write("x.json", {})
    logs.write("y.json")
    read: list[str] = []
    begins = watching._has_start_of_trace

    def reading(place: str) -> bool:
        read.append(os.path.basename(place))  # noqa: PTH119 - a text as given
        return begins(place)

    monkeypatch.setattr(watching, "_has_start_of_trace", reading)
    assert names(watch) == names(watch) == ["y.json"]
    assert read == ["x.json", "y.json"]
    logs.write("x.json")
    logs.date(path, 30)
    assert names(watch) == ["x.json", "y.json"]
    assert read == ["x.json", "y.json", "x.json"]


def test_more_files_than_one_look_reads_are_read_by_the_next(
    watch: LogdirWatch, logs: "Logs", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_MAX_FILES_OPENED_PER_SEARCH", 2)
    for number in range(5):
        logs.write(f"{number}.json")

    assert names(watch) == [f"{number}.json" for number in range(5)]


def test_later_files_appear(watch: LogdirWatch, logs: "Logs") -> None:
    assert names(watch) == []
    logs.write("a.pt.trace.json")
    assert names(watch) == ["a.pt.trace.json"]
    (logs.root / "a.pt.trace.json").unlink()
    assert names(watch) == []


def test_a_file_is_listed_when_it_is_whole(watch: LogdirWatch, logs: "Logs") -> None:
    """It appears without being asked for again once its writer has ended."""
    path = logs.write("a.pt.trace.json", age_s=0)
    looks = 0
    rest = time.sleep

    def writing(seconds: float) -> None:
        nonlocal looks
        looks += 1
        assert watch._found == ()
        if looks < 3:
            with path.open("ab") as file:
                file.write(b" ")
        rest(seconds)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("time.sleep", writing)
        assert names(watch) == ["a.pt.trace.json"]
    assert looks == 3


def test_a_file_that_is_written_anew_stays(watch: LogdirWatch, logs: "Logs") -> None:
    logs.write("a.pt.trace.json")
    assert names(watch) == ["a.pt.trace.json"]
    path = logs.write("a.pt.trace.json", {"schemaVersion": 1}, age_s=0)

    assert names(watch) == ["a.pt.trace.json"]
    assert watch.found_traces(max_wait_s=0)[0].bytes == path.stat().st_size


def test_an_empty_file_is_no_trace_yet(watch: LogdirWatch, logs: "Logs") -> None:
    path = logs.root / "a.pt.trace.json"
    path.touch()
    assert names(watch) == []
    logs.write("a.pt.trace.json")
    assert names(watch) == ["a.pt.trace.json"]


def test_a_list_ends(
    watch: LogdirWatch,
    logs: "Logs",
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(watching, "MAX_TRACES_PER_LOGDIR", 2)
    for number in range(4):
        logs.write(f"{number}.pt.trace.json")

    assert names(watch) == ["0.pt.trace.json", "1.pt.trace.json"]
    assert "more traces than 2" in caplog.text


def test_a_fault_keeps_what_is_known(
    watch: LogdirWatch,
    logs: "Logs",
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    logs.write("a.pt.trace.json")
    names(watch)

    def failing() -> Any:
        raise RuntimeError("of whatever kind")

    with monkeypatch.context() as patched:
        patched.setattr(watch._walk, "files", failing)
        assert names(watch) == ["a.pt.trace.json"]
    assert "of whatever kind" in caplog.text
    logs.write("b.pt.trace.json")
    assert names(watch) == ["a.pt.trace.json", "b.pt.trace.json"]


def test_one_look_at_a_time_and_none_too_soon(
    watch: LogdirWatch, logs: "Logs", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_MIN_PAUSE_BETWEEN_SEARCHES_S", LONG)
    watch.request_search()
    watch.request_search()
    assert watch.found_traces(max_wait_s=LONG) == ()
    logs.write("a.pt.trace.json")
    watch.request_search()

    assert watch.found_traces(max_wait_s=LONG) == ()
    assert watch._search_count == 1


def test_remote_logdirs_are_searched(watch: LogdirWatch) -> None:
    system = fsspec.filesystem("memory")
    system.pipe("/logs/a/plugins/profile/r/x.1.pt.trace.json.gz", b"1234")
    system.pipe("/logs/a/events.out.tfevents.1", b"1")
    system.pipe("/logs/empty.pt.trace.json", b"")
    watch = LogdirWatch(Logdir("memory://logs"))
    names(watch)
    (file,) = watch.found_traces(max_wait_s=0)
    system.rm("/logs", recursive=True)

    assert file.bytes == 4
    assert file.path == "memory:///logs/a/plugins/profile/r/x.1.pt.trace.json.gz"
    assert watch.logdir.run_name(file.folder) == "a/r"


@pytest.mark.parametrize("place", ["nothing://like/this", "memory://there/is/none"])
def test_remote_logdirs_that_cannot_be_read_hold_nothing(watch: LogdirWatch, place: str) -> None:
    watch = LogdirWatch(Logdir(place))
    assert names(watch) == []
