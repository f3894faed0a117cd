"""The report opens from disk with every panel, asks nothing, and lets no foreign script run."""

import json
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Frame, Page
from typer.testing import CliRunner

import selftime
from selftime.cli import app
from selftime.notebook import panel_names as shown_panels
from selftime.notebook import show as shown
from selftime.trace import Trace

MADE: Final = ("cpu", "cuda", "rocm", "graphs", "hostile", "damaged")
REAL: Final = ("v100-2021-resnet50-workers0.pt.trace", "h100-2025-vit", "b200-2025-vllm-eager")
REFUSED: Final = ("cannot be shown", "Not in this report")

Show = Callable[..., None]
Panels = Callable[[Page], list[str]]
Open = Callable[..., Page]
Screenshot = Callable[[Page, str], None]
Written = Callable[..., Path]


@pytest.fixture(scope="session")
def written(
    recorded: Mapping[str, Path],
    real: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Written:
    """The report on a recording by its kind, or on a real trace by its name."""
    folder = tmp_path_factory.mktemp("reports")

    def write(name: str) -> Path:
        file = folder / f"{name}.html"
        if not file.exists():
            trace = recorded[name] if name in recorded else real(name)
            done = CliRunner().invoke(app, ["report", str(trace), "-o", str(file)])
            assert done.exit_code == 0, done.output
        return file

    return write


def refused(page: Page) -> list[str]:
    text = page.inner_text("main")
    return [line for line in text.splitlines() if any(word in line for word in REFUSED)]


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.sweep(1)
def test_every_panel_opens_from_disk(
    kind: str, written: Written, opened: Open, panels: Panels, show: Show
) -> None:
    page = opened(written(kind).as_uri())
    amiss = {}
    for name in panels(page):
        show(page, name)
        if found := refused(page):
            amiss[name] = found
        assert page.evaluate("window.harmed") is None, name
        assert page.locator("main script, main img, main iframe").count() == 0, name
    assert amiss == {}


def test_a_recording_without_events_has_no_report(recorded: Mapping[str, Path]) -> None:
    done = CliRunner().invoke(app, ["report", str(recorded["empty"]), "-o", "report.html"])
    assert done.exit_code == 2
    assert "holds no events" in done.output
    assert not Path("report.html").exists()


@pytest.mark.traces
@pytest.mark.parametrize("trace", REAL)
@pytest.mark.sweep
def test_every_panel_of_a_real_trace_opens_from_disk(
    trace: str, written: Written, opened: Open, panels: Panels, show: Show, screenshot: Screenshot
) -> None:
    file = written(trace)
    assert file.stat().st_size < 5_000_000
    page = opened(file.as_uri())
    amiss = {}
    for name in panels(page):
        show(page, name)
        screenshot(page, f"report/{trace}/{name}")
        if found := refused(page):
            amiss[name] = found
    assert amiss == {}


def test_a_script_that_is_put_into_a_report_does_not_run(
    written: Written, browser: Browser
) -> None:
    page = browser.new_page()
    seen: list[str] = []
    page.on("console", lambda message: seen.append(message.text))
    page.goto(written("cpu").as_uri())
    page.wait_for_selector("nav a")
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.harmed = 1";
            document.body.append(script);
            const picture = document.createElement("img");
            picture.setAttribute("onerror", "window.harmed = 1");
            picture.src = "data:,";
            document.body.append(picture);
        }"""
    )
    page.wait_for_timeout(200)
    assert page.evaluate("window.harmed") is None
    assert len([text for text in seen if "Content Security Policy" in text]) == 2
    asked = "fetch('https://example.org/').then(() => 'answered', () => 'refused')"
    assert page.evaluate(asked) == "refused"
    page.close()


@pytest.mark.sweep
def test_a_report_shows_the_numbers_of_the_command_line(
    written: Written, recorded: Mapping[str, Path], opened: Open, show: Show
) -> None:
    page = opened(written("cuda").as_uri())
    show(page, "kernels")
    words = ["view", "kernels", str(recorded["cuda"]), "--columns=name,count,total", "--rows=0"]
    printed = CliRunner().invoke(app, words, env={"COLUMNS": "200"}).stdout
    text = page.inner_text("main")
    rows = [
        line.split() for line in printed.splitlines()[1:] if "kernel" in line or "sgemm" in line
    ]
    assert len(rows) == 2
    for name, count, *total in rows:
        assert name in text
        assert count in text.split()
        assert " ".join(total) in text


@pytest.mark.sweep
def test_a_folder_is_one_report_with_all_its_traces(
    recorded: Mapping[str, Path], tmp_path: Path, opened: Open, show: Show
) -> None:
    for rank in range(2):
        file = tmp_path / "runs" / f"rank{rank}.pt.trace.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(recorded["cuda"].read_text().replace("sgemm", f"sgemm{rank}"))
    report = tmp_path / "report.html"
    done = CliRunner().invoke(app, ["report", str(tmp_path / "runs"), "-o", str(report)])
    assert done.exit_code == 0, done.output
    page = opened(report.as_uri())
    show(page, "kernels")
    assert "sgemm0" in page.inner_text("main")
    show(page, "kernels", "?trace=rank1.pt.trace.json")
    assert "sgemm1" in page.inner_text("main")


@pytest.fixture
def framed(
    recorded: Mapping[str, Path], tmp_path: Path, opened: Open
) -> Callable[..., tuple[Page, Frame]]:
    """A page in which a trace shows itself as in a notebook, and the frame of it."""

    def open_(kind: str, *words: str, **params: Any) -> tuple[Page, Frame]:
        trace = selftime.load(recorded[kind])
        assert isinstance(trace, Trace)
        html = trace.show(*words, **params)._repr_html_() if words else trace._repr_html_()
        file = tmp_path / "notebook.html"
        file.write_text(f"<!doctype html><meta charset=utf-8><title>{escape(kind)}</title>{html}")
        page = opened(file.as_uri())
        frame = page.frames[-1]
        frame.wait_for_selector("main[data-panel]")
        return page, frame

    return open_


@pytest.mark.sweep
def test_a_trace_shows_itself_in_a_frame(framed: Callable[..., tuple[Page, Frame]]) -> None:
    page, frame = framed("cuda")
    frame.wait_for_selector("main[data-panel=answer]")
    frame.click("nav a[href*=kernels]")
    frame.wait_for_selector("main[data-panel=kernels] >> text=sgemm_128x64_nn")
    assert page.url.endswith("notebook.html")
    assert page.frames[-1].evaluate("origin") == "null"


@pytest.mark.sweep
def test_a_frame_opens_at_a_panel_with_its_options(
    framed: Callable[..., tuple[Page, Frame]], screenshot: Screenshot
) -> None:
    page, frame = framed("cpu", "operators", by="shape")
    frame.wait_for_selector("main[data-panel=operators] >> text=[[8, 3], [3, 4]]")
    screenshot(page, "notebook")


@pytest.mark.sweep
def test_a_hostile_trace_does_nothing_in_a_notebook(
    framed: Callable[..., tuple[Page, Frame]],
) -> None:
    page, frame = framed("hostile")
    frame.wait_for_selector("nav a")
    assert page.evaluate("window.harmed") is None
    assert frame.evaluate("window.harmed") is None
    assert page.locator("script, img").count() == 0


def test_the_panels_of_a_notebook_are_those_of_the_page(
    written: Written, opened: Open, panels: Panels
) -> None:
    page = opened(written("cpu").as_uri())
    listed = {shown(Trace(), panel).panel for panel in shown_panels()}
    assert listed == set(panels(page))


def test_a_report_is_not_damaged_by_being_json(written: Written) -> None:
    """What a program reads out of it: the data are one JSON document."""
    text = written("cpu").read_text(encoding="utf-8")
    begin = text.index('id="selftime-data">') + len('id="selftime-data">')
    data = json.loads(text[begin : text.index("</script>", begin)])
    assert data["format"] == "selftime.report/1"
