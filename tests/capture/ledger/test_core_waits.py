"""How long a thread was ready to run and had no core."""

from threading import Thread

import pytest

from selftime.capture.ledger import core_waits
from selftime.capture.ledger.core_waits import MIN_PAUSE_NS, CoreWaits


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns the list of the times that the system counts, in ns: the next reading's is first."""
    times: list[int] = []
    monkeypatch.setattr(core_waits, "_schedule_text", lambda: b"900 %d 3" % times.pop(0))
    return times


def test_the_wait_since_the_reading_before(waited: list[int]) -> None:
    waited += [100, 130, 170]
    waits = CoreWaits()
    assert [waits.take(n * MIN_PAUSE_NS) for n in (1, 2, 3)] == [0, 30, 40]


def test_short_segments_need_no_reading(waited: list[int]) -> None:
    waited += [100, 130]
    waits = CoreWaits()
    at = [1, 1.5, 1.9, 2]
    assert [waits.take(int(n * MIN_PAUSE_NS)) for n in at] == [0, 0, 0, 30]


def test_the_counts_of_two_threads_are_not_compared(waited: list[int]) -> None:
    waited += [100, 900, 950]
    waits = CoreWaits()
    other = Thread(target=waits.take, args=(MIN_PAUSE_NS,))
    other.start()
    other.join()
    assert [waits.take(n * MIN_PAUSE_NS) for n in (2, 3)] == [0, 50]


def test_a_system_that_does_not_count_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fail() -> bytes:
        asked.append(1)
        raise FileNotFoundError

    monkeypatch.setattr(core_waits, "_schedule_text", fail)
    waits = CoreWaits()
    assert [waits.take(n * MIN_PAUSE_NS) for n in (1, 2, 3)] == [0, 0, 0]
    assert len(asked) == 1
