"""What a watched logdir holds, when it changes, and when it cannot be read."""

import os
import time
from typing import TYPE_CHECKING, Any

import fsspec
import pytest

from selftime.tensorboard import watch as watching
from selftime.tensorboard.logdirs import Logdir
from selftime.tensorboard.watch import Watch

if TYPE_CHECKING:
    from tests.tensorboard.conftest import Logs

LONG = 60.0
"""No test waits so long: a look ends before."""


@pytest.fixture
def watch(logs: "Logs", monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Looks whenever it is asked."""
    monkeypatch.setattr(watching, "_REST_S", 0.01)
    monkeypatch.setattr(watching, "_REMOTE_REST_S", 0.01)
    monkeypatch.setattr(watching, "_SHARE", 0)
    return Watch(Logdir(str(logs.root)))


def names(watch: Watch) -> list[str]:
    """What is found by a look that begins now, and by those that it calls for."""
    with watch._state:
        watch._state.wait_for(lambda: not watch._is_alive, LONG)
        watch._next_look = 0.0
    watch.ask()
    with watch._state:
        assert watch._state.wait_for(lambda: not watch._is_alive, LONG)
    return [os.path.relpath(file.place, watch.logdir.place) for file in watch.found(wait=0)]


def test_nothing(watch: Watch, caplog: pytest.LogCaptureFixture) -> None:
    assert names(watch) == []
    assert names(Watch(Logdir("/there/is/none"))) == []
    assert caplog.text == ""


def test_by_name_and_by_beginning(watch: Watch, logs: "Logs") -> None:
    logs.write("a/x.1.pt.trace.json.gz")
    logs.write("b/any name.json.gz")
    logs.write("c/other.json", {"traceEvents": []})
    logs.write("d/plugins/profile/r/host.trace.json.gz", {"displayTimeUnit": "ns"})
    logs.write("e/list.json", [1])
    (logs.root / "f.json").write_bytes(b"\x1f\x8b damaged")
    (logs.root / "events.out.tfevents.1").write_bytes(b"x")

    assert names(watch) == ["a/x.1.pt.trace.json.gz", "b/any name.json.gz"]


def test_what_begins_otherwise_is_read_once(
    watch: Watch, logs: "Logs", monkeypatch: pytest.MonkeyPatch
) -> None:
    path = logs.write("x.json", {})
    logs.write("y.json")
    read: list[str] = []
    begins = watching._begins_as_trace

    def reading(place: str) -> bool:
        read.append(os.path.basename(place))  # noqa: PTH119 - a text as given
        return begins(place)

    monkeypatch.setattr(watching, "_begins_as_trace", reading)
    assert names(watch) == names(watch) == ["y.json"]
    assert read == ["x.json", "y.json"]
    logs.write("x.json")
    logs.date(path, 30)
    assert names(watch) == ["x.json", "y.json"]
    assert read == ["x.json", "y.json", "x.json"]


def test_more_files_than_one_look_reads_are_read_by_the_next(
    watch: Watch, logs: "Logs", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_MOST_PEEKS", 2)
    for number in range(5):
        logs.write(f"{number}.json")

    assert names(watch) == [f"{number}.json" for number in range(5)]


def test_later_files_appear(watch: Watch, logs: "Logs") -> None:
    assert names(watch) == []
    logs.write("a.pt.trace.json")
    assert names(watch) == ["a.pt.trace.json"]
    (logs.root / "a.pt.trace.json").unlink()
    assert names(watch) == []


def test_a_file_is_listed_when_it_is_whole(watch: Watch, logs: "Logs") -> None:
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


def test_a_file_that_is_written_anew_stays(watch: Watch, logs: "Logs") -> None:
    logs.write("a.pt.trace.json")
    assert names(watch) == ["a.pt.trace.json"]
    path = logs.write("a.pt.trace.json", {"schemaVersion": 1}, age_s=0)

    assert names(watch) == ["a.pt.trace.json"]
    assert watch.found(wait=0)[0].bytes == path.stat().st_size


def test_an_empty_file_is_no_trace_yet(watch: Watch, logs: "Logs") -> None:
    path = logs.root / "a.pt.trace.json"
    path.touch()
    assert names(watch) == []
    logs.write("a.pt.trace.json")
    assert names(watch) == ["a.pt.trace.json"]


def test_a_list_ends(
    watch: Watch, logs: "Logs", monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watching, "MOST_TRACES", 2)
    for number in range(4):
        logs.write(f"{number}.pt.trace.json")

    assert names(watch) == ["0.pt.trace.json", "1.pt.trace.json"]
    assert "more traces than 2" in caplog.text


def test_a_fault_keeps_what_is_known(
    watch: Watch, logs: "Logs", monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
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
    watch: Watch, logs: "Logs", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_REST_S", LONG)
    watch.ask()
    watch.ask()
    assert watch.found(wait=LONG) == ()
    logs.write("a.pt.trace.json")
    watch.ask()

    assert watch.found(wait=LONG) == ()
    assert watch._looks == 1


def test_remote_logdirs_are_searched(watch: Watch) -> None:
    system = fsspec.filesystem("memory")
    system.pipe("/logs/a/plugins/profile/r/x.1.pt.trace.json.gz", b"1234")
    system.pipe("/logs/a/events.out.tfevents.1", b"1")
    system.pipe("/logs/empty.pt.trace.json", b"")
    watch = Watch(Logdir("memory://logs"))
    names(watch)
    (file,) = watch.found(wait=0)
    system.rm("/logs", recursive=True)

    assert file.bytes == 4
    assert file.place == "memory:///logs/a/plugins/profile/r/x.1.pt.trace.json.gz"
    assert watch.logdir.run(file.folder) == "a/r"


@pytest.mark.parametrize("place", ["nothing://like/this", "memory://there/is/none"])
def test_remote_logdirs_that_cannot_be_read_hold_nothing(watch: Watch, place: str) -> None:
    watch = Watch(Logdir(place))
    assert names(watch) == []
