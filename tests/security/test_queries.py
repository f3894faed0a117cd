"""Questions in SQL that would take all memory or all time, and who asks and then goes away."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

import pytest

from selftime.advice.what_if.selected_work import _matches as fits_pattern
from selftime.trace import Trace

EVERY_ROW_WITH_EVERY: Final = "select a.name from slices a, slices b, slices c"
WITHOUT_END: Final = (
    "with recursive n as (select 1 as x union all select x + 1 as x from n) select count(*) from n"
)
COUNT_FOR_EVER: Final = "select count(*) from slices a, slices b, slices c, slices d, slices e"
"""Takes hardly any memory, so that only who asks can end it."""
LONG: Final = ("--query-seconds", "600")
PATIENCE_S: Final = 60.0
"""Longest wait in s for what takes a moment, on a machine that is busy."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits memory; looks in /proc")


@contextmanager
def selftime(*words: str | Path, **streams: Any) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "selftime", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **streams,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def child_that_answers(process: "subprocess.Popen[str]") -> int:
    """The process that answers a query, once it holds itself to the limits."""
    threads = Path(f"/proc/{process.pid}/task")
    until = monotonic() + PATIENCE_S
    while monotonic() < until:
        children = [file.read_text().split() for file in threads.glob("*/children")]
        for child in chain.from_iterable(children):
            limits = Path(f"/proc/{child}/limits").read_text().splitlines()
            [memory] = [line for line in limits if line.startswith("Max address space")]
            if memory.split()[3] != "unlimited":
                return int(child)
        sleep(0.02)
    raise AssertionError("no child is held to a limit")


def has_ended(process: int) -> bool:
    try:
        return ") Z " in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return True


@pytest.mark.parametrize(
    ("query", "option", "said"),
    [
        (EVERY_ROW_WITH_EVERY, "--query-memory=0.25", "it needs more memory than 256 MiB"),
        (WITHOUT_END, "--query-seconds=0.5", "the query was stopped after 0.5 s"),
    ],
)
def test_a_query_of_the_command_is_stopped(
    query: str, option: str, said: str, folder: Path
) -> None:
    with selftime("sql", folder / "trace.json", query, option) as process:
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (2, "")
    assert err.startswith("Error: ")
    assert said in err
    assert f"with `{option.partition('=')[0]}`" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_a_query_of_the_command(number: signal.Signals, folder: Path) -> None:
    words = ("sql", folder / "trace.json", COUNT_FOR_EVER, *LONG)
    with selftime(*words, start_new_session=True) as process:
        child = child_that_answers(process)
        if number == signal.SIGINT:  # a terminal sends it to both
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE_S)
        until = monotonic() + PATIENCE_S
        while not has_ended(child):
            assert monotonic() < until
            sleep(0.02)
    if number == signal.SIGINT:
        assert (process.returncode, err) == (130, "Error: the query was cancelled\n")
    else:
        assert (process.returncode, err) == (-number, "")


def test_a_signal_that_is_ignored_ends_nothing(folder: Path) -> None:
    words = ("sql", folder / "trace.json", WITHOUT_END, "--query-seconds", "1.5")
    ignore = "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
    ignore += "signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.executable, sys.argv[1:])"
    command = [sys.executable, "-c", ignore, sys.executable, "-m", "selftime", *map(str, words)]
    with subprocess.Popen(  # noqa: S603 - our own command
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        child_that_answers(process)
        for number in (signal.SIGHUP, signal.SIGINT):
            os.killpg(process.pid, number)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, "after 1.5 s" in err) == (2, True)


class Agent:
    """An agent that speaks to `selftime mcp` line by line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
        self.say("initialize", {**hello, "clientInfo": {"name": "test", "version": "1"}}, 1)
        self.answer_to(1)
        self.say("notifications/initialized", {})

    def say(self, method: str, params: Any, number: int | None = None) -> None:
        said = {"jsonrpc": "2.0", "method": method, "params": params}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(said | ({} if number is None else {"id": number})))
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def query(self, text: str, number: int) -> None:
        arguments = {"trace": "trace.json", "query": text}
        self.say("tools/call", {"name": "sql", "arguments": arguments}, number)

    def answer_to(self, number: int) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line)
            if said.get("id") == number:
                return json.dumps(said["result"], ensure_ascii=False)
        raise AssertionError("the server ended")


def test_queries_do_not_end_the_server_of_an_agent(folder: Path) -> None:
    pytest.importorskip("mcp")
    words = ("mcp", folder / "trace.json", *LONG, "--query-memory", "0.25")
    with selftime(*words, stdin=subprocess.PIPE) as process:
        agent = Agent(process)
        agent.query(EVERY_ROW_WITH_EVERY, 2)
        assert "it needs more memory than 256 MiB; ask for less" in agent.answer_to(2)
        agent.query(COUNT_FOR_EVER, 3)
        worker = child_that_answers(process)
        agent.say("notifications/cancelled", {"requestId": 3})
        agent.query("select 'alive' as state", 4)
        assert "alive" in agent.answer_to(4)
        assert has_ended(worker)
        agent.query(COUNT_FOR_EVER, 5)
        worker = child_that_answers(process)
        assert process.stdin is not None
        process.stdin.close()  # the agent has gone
        assert process.wait(PATIENCE_S) == 0
        assert has_ended(worker)


def test_no_pattern_goes_back_over_a_name_without_end(traces: dict[str, Trace]) -> None:
    name = "a" * 5000 + "!"
    found = traces["steady"].sql(f"select regexp_like('{name}', '^(a+)+$') as fits")
    assert found["fits"].to_list() == [False]
    assert not fits_pattern(name, "*a" * 40 + "*b")
