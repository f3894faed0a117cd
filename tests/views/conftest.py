"""Golden tables: what a view answers, as text that a person can read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest

from selftime.units import Unit, value_text
from selftime.views import View

GOLDEN = Path(__file__).parent / "golden"

EXACT: Final[dict[Unit, str]] = {"ns": "ns", "instant": "ns", "bytes": "B"}
"""What one is called of the units whose text leaves out digits."""

Golden = Callable[[View[Any], pl.DataFrame], None]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares a view's table with the text kept for the test, `golden/<test>.txt`.

    `pytest --update-golden` writes it anew.
    """
    path = GOLDEN / f"{Path(request.path).stem}.{request.node.name}.txt"
    compared: list[str] = []

    def compare(view: View[Any], table: pl.DataFrame) -> None:
        assert not compared, "a test has one golden table"
        compared.append(view.name)
        lines = _written(view, table)
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(lines, encoding="utf-8")
        assert path.is_file(), f"{path.name} is missing; write it with `pytest --update-golden`"
        assert lines == path.read_text(encoding="utf-8")

    return compare


def _written(view: View[Any], table: pl.DataFrame) -> str:
    """Every column and row, however wide; times and sizes to the last digit."""
    cells = [[c.name, *(_exact(value, c.unit) for value in table[c.name])] for c in view.columns]
    widths = [max(map(len, column)) for column in cells]
    rows = zip(*cells, strict=True)
    padded = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "".join(f"{line}\n" for line in padded)


def _exact(value: object, unit: Unit) -> str:
    name = EXACT.get(unit)
    return f"{value:,} {name}" if name and isinstance(value, int) else value_text(value, unit)
