"""Asking a running program for a recording."""

import json
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from selftime.capture.program.triggers import RecordingTrigger, parse_trigger
from selftime.errors import UsageError
from selftime.ingest.load import load
from selftime.trace import Trace

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

STATE = {"recording": False}


@pytest.fixture
def listening(tmp_path: Path) -> Any:
    """A trigger that listens until the test ends, and what it says to do."""
    begun: list[RecordingTrigger] = []

    def begin(words: str) -> tuple[RecordingTrigger, str]:
        trigger = parse_trigger(words, tmp_path / "runs")
        begun.append(trigger)
        return trigger, trigger.begin(lambda: STATE)

    yield begin
    for trigger in begun:
        trigger.end()


Listening = Callable[[str], tuple[RecordingTrigger, str]]


def within(seconds: float, ask: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if ask():
            return True
        time.sleep(0.02)
    return False


def test_a_file_that_is_touched_asks_once_each_time(listening: Listening, tmp_path: Path) -> None:
    trigger, told = listening("file")
    path = tmp_path / "runs" / "record"
    assert told.endswith(f"touch {path}")
    assert not trigger.take_request()

    path.touch()
    assert within(10, trigger.take_request)
    assert not within(0.5, trigger.take_request)
    os.utime(path, (1, 1))
    assert within(10, trigger.take_request)


def test_a_file_that_was_there_before_asks_for_nothing(
    listening: Listening, tmp_path: Path
) -> None:
    path = tmp_path / "now"
    path.touch()
    trigger, _ = listening(f"file:{path}")

    assert not within(0.5, trigger.take_request)
    path.unlink()
    assert not within(0.5, trigger.take_request)


def test_a_signal_asks(listening: Listening) -> None:
    trigger, told = listening("signal:USR1")
    assert told.endswith(f"kill -USR1 {os.getpid()}")

    os.kill(os.getpid(), signal.SIGUSR1)
    assert trigger.take_request()
    assert not trigger.take_request()
    trigger.end()
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


def test_a_signal_that_the_program_handles_is_left_alone(listening: Listening) -> None:
    before = signal.signal(signal.SIGUSR2, handler)
    try:
        trigger, told = listening("signal")
        assert told == "the program handles SIGUSR2 itself; choose another signal"
        trigger.end()
        assert signal.getsignal(signal.SIGUSR2) is handler
    finally:
        signal.signal(signal.SIGUSR2, before)


def handler(_number: int, _frame: object) -> None:
    raise AssertionError


def asked(url: str, *, method: str = "GET", **headers: str) -> tuple[int, Any]:
    request = urllib.request.Request(url, method=method, headers=headers)  # noqa: S310 - our own
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - as above
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_a_word_on_a_port_asks(listening: Listening) -> None:
    trigger, told = listening("http")
    url = told.split()[-1]
    home = url.removesuffix("record")

    assert asked(home) == (200, STATE)
    assert asked(f"{home}elsewhere")[0] == 404
    assert asked(home, method="POST")[0] == 404
    assert not trigger.take_request()
    assert asked(url, method="POST") == (202, {"asked": True, **STATE})
    assert trigger.take_request()
    assert not trigger.take_request()


def test_a_page_in_a_browser_may_not_ask(listening: Listening) -> None:
    trigger, told = listening("http")
    url = told.split()[-1]

    assert asked(url, method="POST", Origin="https://example.org")[0] == 403
    assert asked(url, method="POST", Host="example.org:80")[0] == 403
    assert not trigger.take_request()


def test_a_port_that_is_taken_is_told(listening: Listening) -> None:
    _, told = listening("http")
    port = told.rpartition(":")[2].removesuffix("/record")

    trigger, again = listening(f"http:{port}")
    assert again.startswith(f"port {port} cannot be used: ")
    assert not trigger.take_request()


@pytest.mark.parametrize("words", ["", "bell", "http:many", "signal:KILL", "signal:NONE"])
def test_a_way_that_there_is_not_is_one_sentence(words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="choose"):
        parse_trigger(words, tmp_path)


@pytest.mark.torch
def test_a_running_loop_is_recorded_whenever_it_is_asked_for(record: "Runner") -> None:
    program = """
    import os
    import time
    import torch
    from pathlib import Path

    net = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    asked, began, steps = 0, time.monotonic(), 0
    while (written := len(list(Path("runs").glob("*.gz")))) < 2 and time.monotonic() - began < 60:
        if steps > 20 and asked == written:
            asked += 1
            os.utime("runs/record", (asked, asked)) if asked > 1 else Path("runs/record").touch()
        net(torch.randn(8, 16)).sum().backward()
        optimizer.step()
        time.sleep(0.002)
        steps += 1
    print("unharmed", asked)
    """
    process = record.start("script", record.write(program), trigger="file")
    stdout, stderr = process.communicate(timeout=120)

    assert process.returncode == 0, stderr
    assert stdout == "unharmed 2\n"
    traces = sorted((record.folder / "runs").glob("*.gz"))
    assert len(traces) == 2
    for path in traces:
        trace = load(path, cache=False)
        assert isinstance(trace, Trace)
        assert trace.view("steps").height == 5
    assert [Path(p).name for p in json.loads((record.folder / "result.json").read_text())["traces"]]


@pytest.mark.torch
def test_a_program_that_nobody_asks_leaves_no_trace(record: "Runner") -> None:
    outcome = record(
        """
        import torch

        net = torch.nn.Linear(16, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(20):
            net(torch.randn(8, 16)).sum().backward()
            optimizer.step()
        """,
        trigger="file",
    )

    assert outcome.result["traces"] == []
    assert outcome.result["reason"] == "no recording was requested while the program made steps"


@pytest.mark.torch
def test_a_port_is_said_although_nothing_else_is(record: "Runner") -> None:
    outcome = record("import torch\nprint('done')\n", trigger="http", notify=None)

    assert outcome.stdout == "done\n"
    assert "selftime: to record, run: curl -X POST http://127.0.0.1:" in outcome.stderr
