from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from selftime.web.caches import SharedCache

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
