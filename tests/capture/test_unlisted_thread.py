"""A thread of selftime's that runs is none of the program's."""

import threading

from selftime.capture.unlisted_thread import UnlistedThread


def test_it_runs_and_is_not_listed() -> None:
    begun, end = threading.Event(), threading.Event()
    before = threading.enumerate()

    def run(number: int) -> None:
        assert number == 3
        begun.set()
        end.wait()

    thread = UnlistedThread(run, 3)
    assert begun.wait(10)

    assert threading.enumerate() == before
    assert not thread.join(0.01)
    end.set()
    assert thread.join(10)
    assert thread.join(10), "it can be waited for again"
