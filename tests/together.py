"""Which tests run on one worker, so that what several of them need is made once and let go again.

Workers take tests one by one (`--dist loadgroup`). What a module or a folder makes once, by a
fixture or by a `cache`, was so made by every worker, and stayed in each of them to the end.

Tests that share nothing travel ten at a time: the scheduler looks through all units of work that it
gave away after each test, and most tests take less time than that.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

__all__ = ["groups", "kept", "named"]

ROOT: Final = Path(__file__).parents[1]
FOR_ALL: Final = {ROOT / "conftest.py", ROOT / "tests" / "conftest.py"}
"""What these make is needed everywhere, by every worker."""
PORTION: Final = 10
"""So many tests of a module that share nothing are given to a worker at once."""


def groups(items: Iterable[pytest.Item]) -> Iterator[tuple[pytest.Item, str]]:
    """The group of each test that has none, in the order in which the tests are written."""
    alone: Counter[Path] = Counter()
    for item in items:
        if item.get_closest_marker("xdist_group") or not isinstance(item, pytest.Function):
            continue
        name = group(item)
        if name is None:
            name = f"{item.path.relative_to(ROOT).as_posix()}:{alone[item.path] // PORTION}"
            alone[item.path] += 1
        yield item, name


def group(item: pytest.Function) -> str | None:
    """Of a test that shares what is made once: the folder or module that it shares it with."""
    makers = {file for file in _makers(item) if _is_ours(file)} - FOR_ALL
    places = {file.parent if file.name == "conftest.py" else file for file in makers}
    if kept(item.module):
        places.add(item.path)
    if not places:
        return None
    outermost = min(places, key=lambda place: (len(place.parts), str(place)))
    return outermost.relative_to(ROOT).as_posix()


def named(item: pytest.Item) -> None:
    """Put a test's group behind its name, where the scheduler looks for it.

    pytest-xdist does so by `_nodeid`, which pytest 9.2 no longer reads.
    """
    marker = item.get_closest_marker("xdist_group")
    if marker and hasattr(item, "_id") and getattr(item.config.option, "loadgroup", False):
        item._id = type(item._id).parse(f"{item.nodeid}@{marker.args[0]}")


@cache
def _is_ours(file: Path) -> bool:
    """Whether it is the project's, and not of a virtual environment in its folder."""
    return any(ROOT / folder in file.parents for folder in ("tests", "src"))


def _makers(item: pytest.Function) -> set[Path]:
    """Where the fixtures are defined that the test uses and that outlive it."""
    known = item._fixtureinfo.name2fixturedefs
    last = [definitions[-1] for name, definitions in known.items() if name in item.fixturenames]
    broad = [found.func for found in last if found.scope != "function"]
    return {Path(str(getattr(func, "__globals__", {}).get("__file__", ""))) for func in broad}


def kept(module: object) -> list[Any]:
    """The functions of a module of tests that remember their results."""
    name = getattr(module, "__name__", None)
    own = [one for one in vars(module).values() if getattr(one, "__module__", None) == name]
    return [one for one in own if hasattr(one, "cache_clear")]
