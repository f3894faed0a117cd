"""Eight questions of a newcomer are answered on the first screen, and lead to more with one click.

What the answers are is asked of the advice and the views in Python.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl
import pytest
from playwright.sync_api import Page, expect

import selftime
from selftime import units
from selftime.advice import Advice, advise
from selftime.reports.advice import wording
from selftime.reports.labels import column_labels
from selftime.reports.plain import plain
from selftime.views import VIEWS

WIDTH: Final = 1440
HEIGHT: Final = 900
"""The screen of a laptop: what is below must be scrolled to."""
OPEN: Final = ".finding[data-open=true]"
TRACES: Final = (
    "v100-2021-resnet50-workers0.pt.trace",
    "a100-2022-diff-control",
    "a100-2024-nccl-2ranks",
    "h100-2025-qwen-0.5b",
    "h100-2025-bert-small",
    "b200-2025-vllm-eager",
    "cpu-2024-gloo-rank34",
    "mi300-2025-resnet-ddp-recompute",
    "mi300-2026-sglang-decode-graph-replay",
    "a100-2023-alexnet",
)


class Answer(NamedTuple):
    """Where the first screen answers a question without a click, with which words."""

    question: str
    selector: str
    words: tuple[str, ...]
    panel: str | None = None
    """The panel that one click on the heading opens."""


def answers(trace: selftime.Trace, advice: Advice) -> Iterator[Answer]:
    yield from answers_of_advice(advice)
    has_device = "device" in VIEWS["overview"](trace)["section"]
    yield idle_answer(trace)
    if has_device:
        yield kernel_answer(trace)
    yield memory_answer(trace)
    yield operator_answer(trace, "device" if has_device else "cpu")


def answers_of_advice(advice: Advice) -> Iterator[Answer]:
    assert advice.account is not None
    row = advice.account.rows[0]
    slow = (units.milliseconds_text(row.ms), units.whole_percent_text(row.share))
    yield Answer("what is slow", ".account-table tbody tr >> nth=0", slow)
    if not advice.findings:
        line = "no line" if row.where.file is None else row.where.file.rpartition("/")[2]
        yield Answer("which line", ".account-table tbody tr >> nth=0", (line,))
        nothing = wording.no_findings_text(advice)
        yield Answer("what to do", ".answer-findings p >> nth=0", (nothing,))
        return
    finding = advice.findings[0]
    line = wording.source_location_text(finding.where)
    yield Answer("which line", f"{OPEN} .finding-place", (line,))
    yield Answer("what to do", f"{OPEN} .remedy-text", (finding.fix.text.replace("`", ""),))
    if finding.fix.code is not None:
        yield Answer("as code", f"{OPEN} .remedy code >> nth=0", (finding.fix.code.split("\n")[0],))
    yield Answer("how much", f"{OPEN} .finding-saving p", (wording.saving_text(finding.saving),))


def idle_answer(trace: selftime.Trace) -> Answer:
    """The largest cause of all devices together."""
    causes = VIEWS["idle"](trace, by="cause", counted=True)
    lacks = VIEWS["idle"].missing_data(trace)
    if lacks:
        return Answer("why idle", "[data-fact=idle] p", words_of(lacks), "idle")
    sums = causes.group_by("cause").agg(pl.col("duration").sum()).sort("duration")
    cause, duration = sums.row(-1)
    words = (column_labels("idle", "cause")[cause].text, units.time_text(duration))
    return Answer("why idle", "[data-fact=idle] li >> nth=0", words, "idle")


def kernel_answer(trace: selftime.Trace) -> Answer:
    top = VIEWS["kernels"](trace).sort("total").row(-1, named=True)
    times = (units.time_text(top["total"]), units.share_text(top["share"]))
    words = (plain(top["name"]), *times)  # the whole name is the title of the short one
    return Answer("top kernel", "[data-fact=kernels] li >> nth=0", words, "kernels")


def memory_answer(trace: selftime.Trace) -> Answer:
    lacks = VIEWS["memory_peak"].missing_data(trace)
    if lacks:
        return Answer("peak of memory", "[data-fact=memory] p", words_of(lacks), "memory")
    blocks = VIEWS["memory_peak"](trace, by="category")
    peaks = blocks.group_by("device_type", "device").agg(pl.col("bytes").sum()).sort("bytes")
    words = (units.bytes_text(peaks.row(-1, named=True)["bytes"]),)
    return Answer("peak of memory", "[data-fact=memory] tr >> nth=0", words, "memory")


def operator_answer(trace: selftime.Trace, where: str) -> Answer:
    time, share = f"self_{where}_time_total", f"self_{where}_share"
    rows = VIEWS["operators"](trace).filter(pl.col("kind") == "operator").sort(time)
    top = rows.row(-1, named=True)
    selector = "[data-fact=operators] li >> nth=0"
    if top[share] < 0.0005:  # would be told as 0.0 %
        words: tuple[str, ...] = ("No time was recorded.",)
        selector = "[data-fact=operators] p"
    else:
        times = (units.time_text(top[time]), units.share_text(top[share]))
        words = (plain(top["name"]), *times)
    return Answer("operator with most self time", selector, words, "operators")


def one_line(text: str) -> str:
    return " ".join(text.split())


def words_of(lacks: list[str]) -> tuple[str, ...]:
    return tuple(lack.replace("`", "") for lack in lacks)


@pytest.mark.traces
@pytest.mark.parametrize("name", TRACES)
@pytest.mark.sweep(2)
def test_eight_questions_are_answered_on_the_first_screen(
    name: str,
    real: Callable[[str], Path],
    address: Callable[[str], str],
    opened: Callable[..., Page],
    settle: Callable[[Page, str], None],
    screenshot: Callable[[Page, str], None],
) -> None:
    trace = selftime.load(str(real(name)))
    assert isinstance(trace, selftime.Trace)
    page = opened(address(name), width=WIDTH, height=HEIGHT)
    settle(page, "answer")
    screenshot(page, f"first-screen-{name}")
    advice = advise(trace)
    told = list(answers(trace, advice))
    missed = {}
    for question, selector, words, _ in told:
        place = page.locator(selector)
        titles = place.locator("a").evaluate_all("links => links.map(link => link.title)")
        said, box = one_line(" ".join([place.inner_text(), *titles])), place.bounding_box()
        assert box is not None
        if not all(one_line(word) in said for word in words) or box["y"] + box["height"] > HEIGHT:
            missed[question] = (words, said, box)
    assert missed == {}
    for fact in (answer for answer in told if answer.panel is not None):
        page.locator(f"[data-fact={fact.panel}] h2 a").click()
        settle(page, fact.panel or "")
        page.go_back()
        settle(page, "answer")
    expect(page.locator(OPEN)).to_have_count(min(1, len(advice.findings)))
