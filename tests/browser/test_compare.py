"""Two recordings side by side: the same keys, the same units, and no claim beyond the steps."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
import pytest
from playwright.sync_api import Page, expect

from selftime.units import time_text

Address = Callable[[str], str]
Open = Callable[..., Page]
Settle = Callable[[Page, str], None]
Show = Callable[..., None]
View = Callable[..., pl.DataFrame]
Real = Callable[[str], Path]

A, B = "a100-2022-diff-control", "a100-2022-diff-test"
STEPS: Final = 6


@pytest.fixture
def two(opened: Open, show: Show, served: Callable[..., str], real: Real) -> Page:
    """The page of two real recordings of one program, the first of them shown."""
    page = opened(served(real(A), real(B)))
    show(page, "compare")
    return page


@pytest.mark.traces
def test_step_times_are_medians_of_the_steps_that_count(two: Page, real: Real, view: View) -> None:
    medians = []
    for name in (A, B):
        steps = view(real(name), "steps").filter(counted=True)
        medians.append(time_text(np.median(steps["time"].to_numpy())))

    expect(two.locator(".compare-headline strong")).to_have_text(" → ".join(medians))
    expect(two.locator(".compare-headline")).to_contain_text("5 of 6 in A, 5 of 6 in B")
    expect(two.locator(".compare-headline")).to_contain_text("B is 1.52 times as slow")
    two.get_by_role("button", name="swap").click()
    expect(two.locator(".compare-headline strong")).to_have_text(" → ".join(medians[::-1]))
    expect(two.locator(".compare-headline")).to_contain_text("B is 1.52 times as fast")


@pytest.mark.traces
def test_rows_are_merged_and_the_largest_difference_is_first(
    two: Page, real: Real, view: View
) -> None:
    two.get_by_role("radio", name="operators", exact=True).click()
    first = two.locator(".compare-row:not(.compare-head)").first
    tables = [view(real(name), "operators") for name in (A, B)]
    sums = [
        {key: time / STEPS for *key_, time in rows for key in [tuple(key_)]}
        for rows in (t.select("name", "kind", "self_device_time_total").rows() for t in tables)
    ]
    keys = sums[0].keys() | sums[1].keys()
    differences = {key: sums[1].get(key, 0) - sums[0].get(key, 0) for key in keys}
    name, kind = most = max(differences, key=lambda key: abs(differences[key]))

    expect(first).to_contain_text(name)
    expect(first).to_contain_text(kind)
    expect(first).to_contain_text(f"+{time_text(differences[most])}")
    expect(first).to_contain_text("only in B")


@pytest.mark.traces
def test_sums_are_divided_only_where_the_page_says_so(two: Page, real: Real, view: View) -> None:
    two.get_by_role("radio", name="kernels").click()
    expect(two.locator(".compare-how")).to_contain_text("divided by 5 and 5 steps that count")
    two.get_by_role("radio", name="of the recording").click()
    expect(two.locator(".compare-how")).to_contain_text("6 steps each")
    whole = two.locator(".compare-total")
    for name in (A, B):
        expect(whole).to_contain_text(time_text(sum(view(real(name), "kernels")["total"])))


def test_a_search_keeps_what_matches(
    opened: Open, show: Show, served: Callable[..., str], recorded: Mapping[str, Path]
) -> None:
    page = opened(served(recorded["cuda"], recorded["rocm"]))
    show(page, "compare", "?name=kernels")
    rows = page.locator(".compare-row:not(.compare-head, .compare-total)")
    expect(rows).to_have_count(2)
    page.keyboard.press("/")
    page.keyboard.type("SGEMM", delay=155)  # about as long as the typing rests before a search
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("sgemm_128x64_nn")
    expect(rows).to_contain_text("1.00\u00d7")


def test_one_trace_alone_has_nothing_beside_it(
    address: Address, opened: Open, settle: Settle
) -> None:
    page = opened(f"{address('cuda')}#/compare")
    settle(page, "compare")
    expect(page.locator(".empty")).to_contain_text("selftime serve BEFORE AFTER")
