"""Modules: the tree table, the icicle above it, and that they mean the same."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from playwright.sync_api import Page, expect

from selftime.units import time_text

Address = Callable[[str], str]
Open = Callable[..., Page]
Settle = Callable[[Page, str], None]
View = Callable[..., pl.DataFrame]
Real = Callable[[str], Path]

RECOMPUTED = "mi300-2025-resnet-ddp-recompute"


def names(page: Page) -> list[str]:
    """The modules that are listed, in order."""
    return [text.strip() for text in page.locator(".tree-name").all_inner_texts()]


@pytest.mark.traces
def test_rows_are_those_of_the_view(
    opened: Open, settle: Settle, served: Callable[..., str], real: Real, view: View
) -> None:
    table = view(real(RECOMPUTED), "modules")
    outside, first = table.row(-1, named=True), table.row(0, named=True)
    assert outside["path"] is None

    page = opened(f"{served(real(RECOMPUTED))}#/modules?by=module")
    settle(page, "modules")

    rows = page.locator(".tree-row:not(.tree-head)")
    for name, row in ((first["name"], first), ("outside modules", outside)):
        shown = rows.filter(has_text=name)
        for column in ("total_device_time", "self_cpu_time", "backward_device_time"):
            expect(shown).to_contain_text(time_text(row[column]))
    page.get_by_role("radio", name="classes").click()
    by_class = view(real(RECOMPUTED), "modules", by="class")
    expect(rows).to_have_count(by_class.height)


@pytest.mark.traces
def test_rows_open_and_close_by_key(
    opened: Open, settle: Settle, served: Callable[..., str], real: Real
) -> None:
    page = opened(f"{served(real('h100-2025-vit'))}#/modules?by=module")
    settle(page, "modules")
    before = names(page)
    assert before[:3] == ["ViTModel_0", "ViTEncoder_0", "ViTLayer_1"]

    page.locator(".tree-table").focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    expect(page.locator(".tree-row.chosen")).to_contain_text("ViTLayer_1")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".tree-row.chosen")).to_have_attribute("aria-expanded", "true")
    assert names(page)[3] == "ViTSdpaAttention_1"
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".tree-row.chosen")).to_have_attribute("aria-expanded", "false")
    assert names(page) == before
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".tree-row.chosen")).to_contain_text("ViTEncoder_0")


@pytest.mark.traces
def test_icicle_and_rows_choose_the_same(
    opened: Open, settle: Settle, served: Callable[..., str], real: Real
) -> None:
    page = opened(f"{served(real('h100-2025-vit'))}#/modules?by=module")
    settle(page, "modules")
    page.locator(".icicle").click(position={"x": 20, "y": 3 * 19 + 8})
    expect(page.locator(".tree-row.chosen")).to_contain_text("ViTSdpaAttention_1")
    expect(page.locator(".modules-path")).to_have_text(
        "ViTModel_0 \u203a ViTEncoder_0 \u203a ViTLayer_1 \u203a ViTSdpaAttention_1"
    )
    page.locator("#module-2").dblclick()
    page.wait_for_url("**root=2**")
    assert names(page)[0] == "ViTLayer_1"
    page.get_by_role("button", name="what is around it").click()
    page.wait_for_url("**root=1**")


@pytest.mark.traces
def test_a_search_keeps_what_is_around(
    opened: Open, settle: Settle, served: Callable[..., str], real: Real, view: View
) -> None:
    table = view(real("h100-2025-vit"), "modules")
    hits = table.filter(table["name"].str.contains("Conv2d"))
    share = sum(hits["total_device_time"]) / sum(table.filter(depth=0)["total_device_time"])

    page = opened(f"{served(real('h100-2025-vit'))}#/modules?by=module&find=conv2d")
    settle(page, "modules")
    expect(page.locator(".find-told")).to_have_text(
        f"{hits.height} match: {share:.1%}".replace("%", " %")
    )
    assert names(page) == ["ViTModel_0", "ViTEmbeddings_0", "ViTPatchEmbeddings_0", "Conv2d_0"]


def test_without_modules_the_flag_is_told(address: Address, opened: Open, settle: Settle) -> None:
    page = opened(f"{address('many')}#/modules?by=module")
    settle(page, "modules")
    expect(page.locator(".empty")).to_contain_text("with_stack=True")
    page.get_by_role("radio", name="with operators").click()  # kinds of work take their place
    expect(page.locator(".missing-data")).to_contain_text("with_stack=True")
    expect(page.locator(".tree-row:not(.tree-head)").first).to_be_visible()


@pytest.mark.traces
def test_operators_stand_within_modules_with_what_they_achieve(
    opened: Open, settle: Settle, served: Callable[..., str], real: Real, view: View
) -> None:
    table = view(real("h100-2025-vit"), "op_profile")
    page = opened(f"{served(real('h100-2025-vit'))}#/modules")
    settle(page, "modules")
    first = table.row(0, named=True)
    row = page.locator(".tree-row:not(.tree-head)").first
    expect(row).to_contain_text(first["name"])
    expect(row.locator(".achieved")).to_have_text(
        f"{first['achieved_share']:.1%}".replace("%", " %")
    )

    page.get_by_role("button", name="Wasted").click()
    page.wait_for_url("**sort=-wasted_time**")
    below = table.filter(parent=1).sort("wasted_time", descending=True, maintain_order=True)
    expect(page.locator(".tree-name").nth(2)).to_have_text(below["name"][0])
    page.get_by_role("radio", name="kinds of work").click()
    page.wait_for_url("**by=category**")
    kinds = view(real("h100-2025-vit"), "op_profile", by="category")
    expect(page.locator(".tree-name").first).to_have_text(kinds["name"][0])
    row.click()
    expect(page.locator(".modules-figures")).to_contain_text("At the peak")
