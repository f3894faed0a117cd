"""Two recordings side by side: the same keys, the same units, and no claim beyond the steps."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest
from playwright.sync_api import Page, expect
from typer.testing import CliRunner

from selftime.cli import app
from selftime.units import time_text

Address = Callable[[str], str]
Open = Callable[..., Page]
Settle = Callable[[Page, str], None]
Show = Callable[..., None]
Screenshot = Callable[[Page, str], None]
View = Callable[..., pl.DataFrame]
Real = Callable[[str], Path]

A, B = "a100-2022-diff-control", "a100-2022-diff-test"
STEPS: Final = 6
SIDES: Final = ("before", "after", "difference")
MINUS: Final = "\u2212"


@pytest.fixture
def two(opened: Open, show: Show, served: Callable[..., str], real: Real) -> Page:
    """The page of two real recordings of one program, the first of them shown."""
    page = opened(served(real(A), real(B)))
    show(page, "compare")
    return page


@pytest.fixture(scope="session")
def command(real: Real) -> Callable[..., dict[str, Any]]:
    """What `selftime compare --format json` tells of the two."""

    def told(*words: str) -> dict[str, Any]:
        sides = [str(real(name)) for name in (A, B)]
        done = CliRunner().invoke(app, ["compare", *sides, "--format", "json", *words])
        assert done.exit_code == 0, done.output
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return told


def signed(nanoseconds: float) -> str:
    if nanoseconds == 0:
        return time_text(0)
    return f"{'+' if nanoseconds > 0 else MINUS}{time_text(abs(nanoseconds))}"


def compared(row: Mapping[str, Any]) -> list[str]:
    """What is shown of a row of differences."""
    times = map(time_text, (row["before"], row["after"]))
    return [*times, signed(row["difference"]), row["verdict"] or ""]


def cells(page: Page, rows: str) -> list[list[str]]:
    """The texts of the cells of some rows."""
    script = "all => all.map(row => [...row.children].map(cell => cell.textContent.trim()))"
    found: list[list[str]] = page.locator(rows).evaluate_all(script)
    return found


def section(name: str) -> str:
    return f"section[aria-label='{name}'] .compare-row:not(.compare-head, .compare-total)"


@pytest.mark.traces
def test_the_steps_are_said_in_the_words_of_the_command(two: Page, real: Real) -> None:
    done = CliRunner().invoke(app, ["compare", str(real(A)), str(real(B))], env={"COLUMNS": "500"})
    cards = two.locator(".compare-step")
    expect(cards).to_have_count(2)
    for number, line in enumerate(done.stdout.splitlines()[:2]):
        title, before, after, said, surely = re.fullmatch(
            r"(.*): (.*) before, (.*) after; (.*) \((.*)\)\.", line
        ).groups()  # type: ignore[union-attr]  # else the test fails
        card = cards.nth(number)
        expect(card.locator("h2")).to_have_text(title)
        expect(card.locator(".compare-times")).to_have_text(f"{before} → {after}")
        expect(card).to_contain_text(said)
        expect(card).to_contain_text(surely)


@pytest.mark.traces
def test_every_table_has_the_numbers_of_the_command(
    two: Page, command: Callable[..., dict[str, Any]]
) -> None:
    told = command()
    notes = [note.replace("`", "") for note in told["notes"]]
    expect(two.locator(".compare-notes li")).to_have_text(notes)
    parts = [
        [row["part"].replace("_", " "), *compared(row)] for row in told["tables"]["parts"]["rows"]
    ]
    shown = cells(two, section("What a step is made of"))
    assert [[*row[:4], row[-1]] for row in shown] == parts
    assert kernels(two) == [kernel(row) for row in told["tables"]["kernels"]["rows"]]
    two.get_by_role("radio", name="name", exact=True).click()
    named = command("--kernels", "name")["tables"]["kernels"]["rows"]
    two.wait_for_function("() => location.hash.includes('kernels=name')")
    first = kernels(two)
    assert len(first) > 10  # those in sight
    assert first == [kernel(row) for row in named[: len(first)]]


def kernels(page: Page) -> list[list[str]]:
    return [[row[0], *row[3:6], row[-1]] for row in cells(page, section("Kernels and copies"))]


def kernel(row: dict[str, Any]) -> list[str]:
    return [row["what"], *compared(row)]


@pytest.mark.traces
def test_the_tree_adds_up_to_the_step(two: Page, command: Callable[..., dict[str, Any]]) -> None:
    for metric in ("device", "host"):
        two.get_by_role("radio", name=metric, exact=True).click()
        title = two.locator("section[aria-label='Modules and operators'] h2")
        expect(title).to_contain_text(f"time of the {metric}")
        settled(two)
        adds_up(two, command("--metric", metric)["tables"]["tree"]["rows"])


def adds_up(page: Page, rows: list[dict[str, Any]]) -> None:
    """The first row is all of the others; each has the numbers of the command."""
    found = cells(page, "section[aria-label='Modules and operators'] .tree-row:not(.tree-head)")
    whole = [sum(row[side] for row in rows) for side in SIDES]
    assert found[0][:4] == ["a step", *map(time_text, whole[:2]), signed(whole[2])]
    expect(page.locator(".compare-details")).to_contain_text(signed(whole[2]))
    by_name: dict[str, list[list[str]]] = {}
    for row in rows:
        totals = [row[f"total_{side}"] for side in SIDES]
        told = [*map(time_text, totals[:2]), signed(totals[2]), row["total_verdict"] or ""]
        by_name.setdefault(row["name"], []).append([*told, signed(row["difference"])])
    assert len(found) > 10
    for name, *times in found[1:]:
        assert [*times[:3], times[4], times[5]] in by_name[name], name


def settled(page: Page) -> None:
    page.wait_for_function("() => !document.querySelector('main [aria-busy=true]')")


@pytest.mark.sweep
@pytest.mark.traces
def test_the_two_are_exchanged(two: Page) -> None:
    times = two.locator(".compare-times").first
    before, after = times.inner_text().split(" → ")
    two.get_by_role("button", name="swap").click()
    expect(times).to_have_text(f"{after} → {before}")
    expect(two.get_by_role("combobox", name="Before")).to_contain_text(B)
    two.get_by_role("combobox", name="Before").select_option(label=f"{A}.json.gz")
    expect(times).to_have_text(f"{before} → {after}")


@pytest.mark.traces
def test_the_flame_graph_is_walked_and_focused(two: Page, screenshot: Screenshot) -> None:
    chart = two.locator(".icicle")
    expect(chart).to_have_attribute("aria-label", re.compile("widths are the time after"))
    chart.focus()
    two.keyboard.press("ArrowDown")
    two.keyboard.press("ArrowDown")
    expect(chart).to_have_attribute("aria-label", re.compile(r"before, .* after, slower, \+"))
    name = two.locator(".compare-details b").first.inner_text()
    two.keyboard.press("Enter")
    two.wait_for_url("**focus=**")
    expect(two.locator(".compare-flame figcaption")).to_contain_text(f"in {name}")
    expect(two.locator(".tree-row:not(.tree-head)").first).to_contain_text(name)
    screenshot(two, "compare/focused")
    two.get_by_role("button", name="show all").click()
    expect(two.locator(".compare-flame figcaption")).to_contain_text("in all")
    two.get_by_role("radio", name="both").click()
    expect(two.locator(".compare-flame")).to_have_count(2)
    box = two.locator(".icicle").first.bounding_box()
    assert box is not None
    two.mouse.move(box["x"] + 60, box["y"] + 10)
    expect(two.locator(".icicle-tip")).to_contain_text("with all within it")


@pytest.mark.traces
@pytest.mark.sweep
def test_a_search_marks_nodes_and_keeps_rows(two: Page) -> None:
    two.keyboard.press("/")
    two.keyboard.type("memcpy", delay=155)
    rows = two.locator(section("Kernels and copies"))
    expect(rows).to_have_count(1)
    two.get_by_role("searchbox").fill("compiledfunction")
    expect(two.locator(".compare-found")).to_contain_text("nodes match")
    hits = two.locator(".tree-row.hit")
    expect(hits.first).to_contain_text("CompiledFunction")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_hostile_names_do_nothing_and_nothing_is_wider_than_the_page(  # noqa: PLR0913, PLR0917 - fixtures
    width: int,
    scheme: str,
    opened: Open,
    settle: Settle,
    served: Callable[..., str],
    recorded: Mapping[str, Path],
    screenshot: Screenshot,
) -> None:
    address = served(recorded["hostile"], recorded["cuda"])
    page = opened(f"{address}#/compare?kernels=name", width=width, color_scheme=scheme)
    settle(page, "compare")
    expect(page.locator(".compare-told")).to_contain_text("<img src=x onerror=")
    assert page.evaluate("window.harmed") is None
    assert page.locator("main :is(script, img, iframe)").count() == 0
    assert page.evaluate("document.querySelector('main').scrollWidth <= innerWidth")
    unnamed = page.locator("main :is(button, select, [role=treegrid], [role=table])")
    assert all(name.strip() for name in unnamed.evaluate_all(NAMED))
    screenshot(page, f"compare/hostile-{width}-{scheme}")


NAMED: Final = """all => all.map(one =>
  one.getAttribute("aria-label") ?? one.textContent)"""


@pytest.mark.sweep
def test_a_page_from_disk_has_the_comparison(
    opened: Open, settle: Settle, recorded: Mapping[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "page.html"
    sides = [str(recorded[name]) for name in ("cuda", "rocm")]
    done = CliRunner().invoke(app, ["compare", *sides, "--format", "html", "-o", str(out)])
    assert done.exit_code == 0, done.output
    page = opened(out.as_uri())
    settle(page, "compare")
    expect(page.locator(".compare-tools")).to_contain_text("cuda.pt.trace.json")
    expect(page.locator(".compare-step")).to_have_count(2)
    page.get_by_role("radio", name="host", exact=True).click()
    settled(page)
    expect(page.locator("section[aria-label='Modules and operators'] h2")).to_contain_text("host")
    page.get_by_role("radio", name="operators", exact=True).click()
    settle(page, "compare")
    expect(page.locator(".compare-row").nth(1)).to_contain_text("AddmmBackward0")


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
    expect(first).to_contain_text("only after")


@pytest.mark.traces
@pytest.mark.sweep
def test_sums_are_divided_only_where_the_page_says_so(two: Page, real: Real, view: View) -> None:
    two.get_by_role("radio", name="operators", exact=True).click()
    two.get_by_role("radio", name="self cpu time total").click()
    expect(two.locator(".compare-how")).to_contain_text("divided by 6 and 6 steps")
    two.get_by_role("radio", name="of the recording").click()
    expect(two.locator(".compare-how")).to_contain_text("6 steps each")
    whole = two.locator(".compare-total")
    for name in (A, B):
        expect(whole).to_contain_text(
            time_text(sum(view(real(name), "operators")["self_cpu_time_total"]))
        )


def test_a_search_keeps_what_matches(
    opened: Open, show: Show, served: Callable[..., str], recorded: Mapping[str, Path]
) -> None:
    page = opened(served(recorded["cuda"], recorded["rocm"]))
    show(page, "compare", "?name=operators")
    rows = page.locator(".compare-row:not(.compare-head, .compare-total)")
    expect(rows.nth(1)).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("ADDMMB", delay=155)  # about as long as the typing rests before a search
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("AddmmBackward0")
    expect(rows).to_contain_text("1.00\u00d7")


def test_one_trace_alone_has_nothing_beside_it(
    address: Address, opened: Open, settle: Settle
) -> None:
    page = opened(f"{address('cuda')}#/compare")
    settle(page, "compare")
    expect(page.locator(".empty")).to_contain_text("selftime serve BEFORE AFTER")
