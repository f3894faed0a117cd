"""Lines: the hottest is shown at once, beside its source, with what ran on it."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from playwright.sync_api import Page, expect

from selftime.reports.labels import LINE_EVIDENCE_LABELS
from selftime.units import time_text

Address = Callable[[str], str]
Open = Callable[..., Page]
Settle = Callable[[Page, str], None]
View = Callable[..., pl.DataFrame]

PROGRAM = """import torch


def load():
    return torch.ones(3)


def step(batch):
    return batch.exp()
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A recording of a program whose source lies beside it: `step` takes the longest."""
    source = tmp_path / "train.py"
    source.write_text(PROGRAM, encoding="utf-8")

    def ran(category: str, name: str, ts: float, dur: float, number: int = 0) -> dict[str, Any]:
        args = {"Python id": number} if number else {}
        where = {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": 9}
        return {**where, "ts": ts, "dur": dur, "args": args}

    events = [
        ran("python_function", f"{source}(4): load", 0, 100, 1),
        ran("cpu_op", "aten::ones", 10, 80),
        ran("python_function", f"{source}(8): step", 200, 700, 2),
        ran("cpu_op", "aten::exp", 210, 600),
    ]
    path = tmp_path / "train.pt.trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}), encoding="utf-8")
    return path


def test_the_hottest_line_stands_beside_its_source(
    program: Path, served: Callable[..., str], opened: Open, settle: Settle, view: View
) -> None:
    hottest = view(program, "lines").row(0, named=True)
    assert hottest["line"] == 8

    page = opened(f"{served(program)}#/lines")
    settle(page, "lines")

    chosen = page.locator(".listing-row.chosen")
    expect(chosen).to_contain_text("def step(batch):")
    expect(chosen).to_contain_text(time_text(hottest["self_cpu_time"]))
    expect(chosen).to_contain_text("function")
    expect(page.locator(".ran")).to_contain_text(LINE_EVIDENCE_LABELS["definition"].doc)
    expect(page.locator(".ran-name", has_text="aten::exp")).to_be_visible()
    expect(page.locator(".listing-row:not(.listing-head)")).to_have_count(9)


def test_n_leads_from_line_to_line_by_cost(
    program: Path, served: Callable[..., str], opened: Open, settle: Settle
) -> None:
    page = opened(f"{served(program)}#/lines")
    settle(page, "lines")
    page.keyboard.press("n")
    expect(page.locator(".listing-row.chosen")).to_contain_text("def load():")
    expect(page.locator(".lines-hot")).to_contain_text("2 of 2 lines by cost")
    page.keyboard.press("N")
    expect(page.locator(".listing-row.chosen")).to_contain_text("def step(batch):")
    page.keyboard.press("c")
    expect(page.locator(".listing-row:not(.listing-head)")).to_have_count(2)

    page.get_by_label("Lines open in").select_option("vscode")
    link = page.locator(".lines-hot .editor-link")
    address = f"vscode://file{program.with_name('train.py').as_posix()}:8"
    expect(link).to_have_attribute("href", address)
    page.reload()  # the choice is remembered
    expect(link).to_have_attribute("href", address)


def test_a_line_is_reached_by_its_address_and_leads_to_the_timeline(
    program: Path, served: Callable[..., str], opened: Open, settle: Settle
) -> None:
    page = opened(f"{served(program)}#/lines?file=train.py&line=5")
    settle(page, "lines")
    expect(page.locator(".listing-row.chosen")).to_contain_text("return torch.ones(3)")
    expect(page.locator(".ran")).to_contain_text("Nothing was recorded on this line itself")
    page.locator(".listing-row", has_text="def load():").click()
    row = page.locator(".ran-rows tr", has=page.get_by_text("aten::ones", exact=True))
    expect(row.get_by_role("link")).to_have_text(time_text(80_000))
    row.get_by_role("link").click()
    settle(page, "timeline")
    assert "slice=" in page.url


def test_without_the_file_its_lines_are_a_table(
    address: Address, opened: Open, settle: Settle, recorded: Mapping[str, Path], view: View
) -> None:
    known = view(recorded["cuda"], "lines").filter(file="train.py")

    page = opened(f"{address('cuda')}#/lines")
    settle(page, "lines")
    expect(page.locator(".lines-absent")).to_contain_text("not available")
    expect(page.locator(".listing-row:not(.listing-head)")).to_have_count(known.height)
    device = page.locator(".listing-row.chosen .listing-bar").first
    expect(device).to_have_text(time_text(max(known["device_time"])))


def test_without_stacks_the_flag_is_told(address: Address, opened: Open, settle: Settle) -> None:
    page = opened(f"{address('many')}#/lines")
    settle(page, "lines")
    expect(page.locator(".empty")).to_contain_text("with_stack=True")
