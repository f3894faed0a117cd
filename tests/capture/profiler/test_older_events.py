"""Events of older releases of PyTorch, drawn from those of this one by leaving methods out."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch._C._autograd import _KinetoEvent  # noqa: E402 - torch is looked for first

from selftime.capture import Profile  # noqa: E402 - torch is looked for first
from selftime.capture.in_memory.events import event_counts  # noqa: E402 - likewise
from selftime.capture.profiler import older_events  # noqa: E402 - likewise

LACKING_IN_2_4 = (
    "activity_type",
    "end_ns",
    "is_python_function",
    "overload_name",
)


class OlderEvent:
    """An event with the methods of PyTorch 2.4 alone."""

    def __init__(self, event: Any) -> None:
        self._event = event

    def __getattr__(self, name: str) -> Any:
        if name in LACKING_IN_2_4:
            raise AttributeError(name)
        return getattr(self._event, name)


class OlderResults:
    """Results as PyTorch 2.4 gives them: frames are in the tree of events alone."""

    def __init__(self, results: Any) -> None:
        self.experimental_event_tree = results.experimental_event_tree
        self._events = results.events()

    def events(self) -> list[OlderEvent]:
        return [OlderEvent(event) for event in self._events if not _is_frame(event)]


def _is_frame(event: Any) -> bool:
    return older_events.CompletedEvent(event).is_python_function()


def work() -> None:
    with torch.profiler.record_function("mine"):
        rows = torch.ones(8, 8, requires_grad=True)
        torch.mm(rows, rows).sum().backward()


@pytest.fixture(scope="module")
def results() -> Any:
    work()
    with Profile(with_stack=True, profile_memory=True) as prof:
        work()
    recorded: Any = prof.profiler
    return recorded.kineto_results


def test_what_methods_lack_is_told_all_the_same(
    results: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The class of events is asked what it has, and its methods cannot be taken away.
    monkeypatch.setattr(older_events, "_KinetoEvent", object)
    found = older_events.complete_events(OlderResults(results))

    operators = [event for event in found if event.activity_type() == "cpu_op"]
    assert {"aten::mm", "aten::sum", "MmBackward0"} <= {event.name() for event in operators}
    assert {event.overload_name() for event in operators} == {""}
    [mine] = [event for event in found if event.name() == "mine"]
    assert mine.activity_type() == "user_annotation"
    memory = [event for event in found if event.activity_type() == "cpu_instant_event"]
    assert {event.name() for event in memory} == {"[memory]"}


@pytest.mark.skipif(not hasattr(_KinetoEvent, "activity_type"), reason="needs a newer PyTorch")
def test_it_equals_what_newer_releases_tell(results: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(events: Any) -> list[tuple[int, int, str]]:
        return sorted((event.start_ns(), event.end_ns(), event.activity_type()) for event in events)

    expected = told(results.events())
    monkeypatch.setattr(older_events, "_KinetoEvent", object)
    assert told(older_events.complete_events(OlderResults(results))) == expected


def test_frames_come_from_the_tree(results: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(older_events, "_KinetoEvent", object)
    found = older_events.complete_events(OlderResults(results))

    frames = [event for event in found if event.is_python_function()]
    [own] = [frame for frame in frames if frame.name().endswith(": work")]
    [mine] = [event for event in found if event.name() == "mine"]
    assert own.device_resource_id() == mine.device_resource_id()
    assert own.start_ns() <= mine.start_ns() <= mine.end_ns() <= own.end_ns()
    assert not own.correlation_id()
    assert event_counts(found)[1] == len(frames)
