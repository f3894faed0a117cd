"""Reading a trace for requests: how far it is, and its end once nobody waits."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import sleep
from typing import Any

import pytest
from waitress import wasyncore

from selftime.cli import serve
from selftime.errors import ReadingStopped
from selftime.progress import ProgressCallback
from selftime.trace import Trace
from selftime.web import PageApp, TracesAtPaths
from selftime.web.answers import PageDataAnswers
from selftime.web.client_presence import is_client_gone

PATIENCE_S = 60.0


class SlowTraces(TracesAtPaths):
    """Traces that are read for as long as `goes_on` is not set, and say so."""

    def __init__(self, path: Path) -> None:
        super().__init__([str(path)])
        self.is_read, self.goes_on, self.ended = Event(), Event(), Event()
        self.times = 0

    def open(self, trace_id: str, *, progress: ProgressCallback | None = None) -> Trace:
        assert progress is not None
        self.times += 1
        try:
            for done in range(1, 1 << 40):
                progress(min(done, 50), 100)
                self.is_read.set()
                if self.goes_on.wait(0.001):
                    break
            progress(100, 100)
            return super().open(trace_id)
        finally:
            self.ended.set()


@pytest.fixture
def slow(write: Callable[..., Path]) -> Iterator[SlowTraces]:
    traces = SlowTraces(write())
    yield traces
    traces.goes_on.set()


@contextmanager
def asking(answers: PageDataAnswers, *gone: Event) -> Iterator[list[Any]]:
    """Clients that wait for the trace; each has gone once its event is set. What each was told."""
    [listed] = answers.sources.listed_traces()
    told: list[Any] = []

    def ask(is_gone: Event) -> None:
        is_client_gone.set(is_gone.is_set)
        try:
            told.append(json.loads(answers.contents.contents_json({".trace": listed.id})))
        except ReadingStopped as error:
            told.append(error)

    threads = [Thread(target=ask, args=(one,)) for one in gone]
    for thread in threads:
        thread.start()
    yield told
    for thread in threads:
        thread.join(PATIENCE_S)


def test_how_far_a_reading_is_is_told(slow: SlowTraces) -> None:
    answers = PageDataAnswers(slow)
    [listed] = slow.listed_traces()
    words = {".trace": listed.id}
    assert json.loads(answers.progress_json(words)) == {"progress": None}
    with asking(answers, Event()) as told:
        assert slow.is_read.wait(PATIENCE_S)
        progress = json.loads(answers.progress_json(words))["progress"]
        assert progress["total"] == 100
        assert 0 < progress["done"] <= 50
        assert progress["stage"] == "Reading the file"
        slow.goes_on.set()
    assert told[0]["landing"] == "answer"
    assert json.loads(answers.progress_json(words)) == {"progress": None}


def test_a_reading_ends_when_the_last_client_goes(slow: SlowTraces) -> None:
    one, other = Event(), Event()
    answers = PageDataAnswers(slow)
    with asking(answers, one, other) as told:
        assert slow.is_read.wait(PATIENCE_S)
        [reading] = answers.readings.shared._readings.values()
        while len(reading.waiting) < 2:
            sleep(0.001)
        one.set()
        slow.is_read.clear()
        assert slow.is_read.wait(PATIENCE_S)  # it goes on for the other
        assert not slow.ended.is_set()
        other.set()
        assert slow.ended.wait(PATIENCE_S)
    assert [type(answer) for answer in told] == [ReadingStopped, ReadingStopped]


def test_a_trace_that_was_left_is_read_again(slow: SlowTraces) -> None:
    answers, gone = PageDataAnswers(slow), Event()
    with asking(answers, gone):
        assert slow.is_read.wait(PATIENCE_S)
        gone.set()
    slow.goes_on.set()
    with asking(answers, Event()) as told:
        pass
    assert told[0]["landing"] == "answer"
    assert slow.times == 2


def test_linking_ends_too_when_the_client_goes(write: Callable[..., Path]) -> None:
    file = write()
    answers = PageDataAnswers(TracesAtPaths([str(file)]))
    [listed] = answers.sources.listed_traces()
    size, looks = file.stat().st_size, 0

    def is_gone_while_it_is_linked() -> bool:
        nonlocal looks
        progress = answers.readings.shared.progress_of(listed.id)
        looks += progress is None or progress["done"] >= size
        return looks > 3  # the reader itself looks once or twice at its end

    is_client_gone.set(is_gone_while_it_is_linked)
    try:
        with pytest.raises(ReadingStopped):
            answers.contents.contents_json({".trace": listed.id})
    finally:
        is_client_gone.set(None)


def test_a_connection_that_ends_ends_the_reading(slow: SlowTraces) -> None:
    listening = serve._open_listening_socket("127.0.0.1", 0)
    host = listening.getsockname()
    server = serve._make_waitress_server(PageApp(slow), listening, threads=2)  # type: ignore[arg-type]  # no guard
    running = Thread(target=server.run)
    running.start()
    try:
        [listed] = slow.listed_traces()
        with socket.create_connection(host) as client:
            client.sendall(
                f"GET /api/contents?.trace={listed.id} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
            )
            assert slow.is_read.wait(PATIENCE_S)
        assert slow.ended.wait(PATIENCE_S)
    finally:
        slow.goes_on.set()
        server.trigger.pull_trigger(lambda: wasyncore.close_all(server._map))  # ends its loop
        running.join()
        server.task_dispatcher.shutdown()
    assert slow.times == 1
