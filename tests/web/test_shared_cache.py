from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from selftime.errors import ReadingStopped
from selftime.web.caches import SharedCache
from selftime.web.client_presence import is_client_gone

MANY = 16


def held(shelf: "SharedCache[str, str]", *keys: str) -> list[str]:
    """Which of the keys are there: the others are made anew."""
    return [key for key in keys if shelf.get(key, give("new")) != "new"]


def give(value: str) -> Callable[[], str]:
    return lambda: value


def test_a_value_is_made_once() -> None:
    shelf: SharedCache[str, str] = SharedCache(10, len)
    assert shelf.get("a", give("x")) == "x"
    assert shelf.get("a", give("y")) == "x"


def test_who_asks_meanwhile_waits_for_the_same_value() -> None:
    shelf: SharedCache[str, object] = SharedCache(10, lambda _: 1)
    together, made = Barrier(MANY), []

    def make() -> object:
        made.append(object())
        return made[-1]

    def ask(_: int) -> object:
        together.wait()
        return shelf.get("a", make)

    with ThreadPoolExecutor(MANY) as pool:
        values = list(pool.map(ask, range(MANY)))
    assert len(made) == 1
    assert all(value is made[0] for value in values)


def test_different_keys_do_not_wait_for_each_other() -> None:
    shelf: SharedCache[str, str] = SharedCache(10, len)
    go, begun = Event(), Event()

    def slow() -> str:
        begun.set()
        assert go.wait(60)
        return "slow"

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(shelf.get, "a", slow)
        assert begun.wait(60)
        assert shelf.get("b", give("fast")) == "fast"
        go.set()
        assert waiting.result() == "slow"


def test_an_error_is_told_to_all_who_wait_and_not_kept() -> None:
    shelf: SharedCache[str, str] = SharedCache(10, len)
    begun, go = Event(), Event()

    def fail() -> str:
        begun.set()
        assert go.wait(60)
        raise ValueError("no")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(shelf.get, "a", fail)
        assert begun.wait(60)
        second = pool.submit(shelf.get, "a", fail)
        go.set()
        for one in (first, second):
            with pytest.raises(ValueError, match="no"):
                one.result()
    assert shelf.get("a", give("x")) == "x"


def test_the_longest_unused_goes_first() -> None:
    shelf: SharedCache[str, str] = SharedCache(6, lambda _: 2)
    for key in "abc":
        shelf.get(key, give("old"))
    assert held(shelf, "a") == ["a"]
    shelf.get("d", give("old"))
    assert held(shelf, "a", "c", "d") == ["a", "c", "d"]
    assert held(shelf, "b") == []


def test_the_newest_stays_however_heavy() -> None:
    shelf: SharedCache[str, str] = SharedCache(3, len)
    shelf.get("small", give("x"))
    shelf.get("large", give("x" * 100))
    assert held(shelf, "large") == ["large"]
    assert len(shelf) == 1


def test_who_goes_away_does_not_wait_on() -> None:
    shelf: SharedCache[str, str] = SharedCache(10, len)
    begun, may_end = Event(), Event()

    def make() -> str:
        begun.set()
        assert may_end.wait(60)
        return "x"

    def ask_and_go() -> str:
        is_client_gone.set(lambda: True)
        return shelf.get("a", make)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(shelf.get, "a", make)
        assert begun.wait(60)
        with pytest.raises(ReadingStopped):
            pool.submit(ask_and_go).result(60)
        may_end.set()
        assert first.result(60) == "x"


def test_who_stays_gets_the_value_that_another_has_left() -> None:
    shelf: SharedCache[str, str] = SharedCache(10, len)
    begun, may_end = Event(), Event()

    def begin_and_go() -> str:
        begun.set()
        assert may_end.wait(60)
        raise ReadingStopped("nobody waits")

    def ask_and_stay() -> str:
        is_client_gone.set(lambda: False)
        return shelf.get("a", give("x"))

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(shelf.get, "a", begin_and_go)
        assert begun.wait(60)
        second = pool.submit(ask_and_stay)
        may_end.set()
        assert second.result(60) == "x"
        assert isinstance(first.exception(60), ReadingStopped)
