"""The report is one small, safe file that says what the command line says."""

import json
import zlib
from base64 import b64decode, b64encode
from dataclasses import replace
from functools import cache
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import selftime
from selftime.advice import Evidence, Finding, Fix, Saving, Where, advise
from selftime.cli import app
from selftime.errors import UsageError
from selftime.reports.html import LIMIT, as_html
from selftime.reports.html.packing import (
    ReportItemSizes,
    choose_fitting_versions,
    compress_page_columns,
)
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views import VIEWS

GOLDEN = Path(__file__).parents[1] / "golden" / "packed_columns.json"
HOSTILE = "</script><script>alert(1)</script><!-- "


class Elements(HTMLParser):
    """The elements of a page, with their attributes and the text of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.is_inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.texts.append("")
        self.is_inside = True

    def handle_endtag(self, tag: str) -> None:
        if tag in {"script", "style"}:
            self.is_inside = False

    def handle_data(self, data: str) -> None:
        if self.is_inside and self.texts:
            self.texts[-1] += data

    def of(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        pairs = zip(self.found, self.texts, strict=True)
        return [(attrs, text) for (name, attrs), text in pairs if name == tag]


def elements(page: str) -> Elements:
    parser = Elements()
    parser.feed(page)
    return parser


def carried(page: str) -> dict[str, Any]:
    [text] = [t for attrs, t in elements(page).of("script") if attrs.get("id") == "selftime-data"]
    data: dict[str, Any] = json.loads(text)
    return data


def unpacked(text: str) -> Any:
    return json.loads(zlib.decompress(b64decode(text)))


def cells(column: dict[str, Any], before: dict[str, list[Any]], rows: int) -> list[Any]:
    """What packing did, undone: as the page does it."""
    match column:
        case {"codes": codes, "texts": texts}:
            return [None if code is None else texts[code] for code in codes]
        case {"same": value}:
            return [value] * rows
        case {"like": other}:
            return before[other]
        case {"steps": steps}:
            return [sum(steps[: row + 1]) for row in range(len(steps))]
        case {"beside": other, "more": more}:
            pairs = zip(more, before[other], strict=True)
            return [None if m is None else m + beside for m, beside in pairs]
    values: list[Any] = column["values"]
    return values


def rows_of(page: dict[str, Any]) -> list[dict[str, Any]]:
    columns: dict[str, list[Any]] = {}
    for name, column in page["columns"].items():
        columns[name] = cells(column, columns, page["rows"])
    return [{name: values[row] for name, values in columns.items()} for row in range(page["rows"])]


def training() -> Trace:
    return sketch("""
        a = aten::mm; line = train.py:7 main
        b = aten::relu; line = train.py:8 main
        cpu 1  | aaa bbbbbbbbb
        call 1 |  k         m
        gpu 7  |   kkk       mmmm
    """)


@cache
def report() -> str:
    """The report on the training above."""
    return as_html({"a.json": training()})


@cache
def least() -> int:
    """Bytes of a report with nothing to tell: the page itself."""
    return len(as_html({"a": Trace()}).encode())


def named(name: str, count: int = 1) -> dict[str, Any]:
    event = {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1, "dur": 5}
    events = [{**event, "name": f"{name}{n or ''}", "ts": 10 * n} for n in range(count)]
    return {"schemaVersion": 1, "traceEvents": events}


@pytest.fixture
def load(tmp_path: Path) -> Any:
    def read(document: dict[str, Any], name: str = "trace.json") -> Trace:
        file = tmp_path / name
        file.write_text(json.dumps(document))
        trace = selftime.load(file)
        assert isinstance(trace, Trace)
        return trace

    return read


OFFERS = st.lists(
    st.builds(
        ReportItemSizes,
        st.integers(0, 3),
        st.lists(st.integers(0, 50), min_size=1, max_size=4).map(lambda s: tuple(sorted(s))),
    ),
    max_size=12,
)


@given(OFFERS, st.integers(0, 300))
def test_what_is_chosen_fits_and_uses_the_room(offers: list[ReportItemSizes], room: int) -> None:
    versions = choose_fitting_versions(offers, room)
    taken = sum(o.sizes[v] for o, v in zip(offers, versions, strict=True) if v is not None)
    assert taken <= room
    left_out = [offer for offer, v in zip(offers, versions, strict=True) if v is None]
    least = sum(o.sizes[0] for o, v in zip(offers, versions, strict=True) if v is not None)
    assert all(offer.sizes[0] > room - least for offer in left_out)
    for offer, version in zip(offers, versions, strict=True):
        if version is not None:
            larger = [size for size in offer.sizes[version + 1 :] if size > offer.sizes[version]]
            assert all(size - offer.sizes[version] > room - taken for size in larger)


@given(OFFERS, st.integers(0, 300))
def test_a_lower_rank_is_carried_first(offers: list[ReportItemSizes], room: int) -> None:
    versions = choose_fitting_versions(offers, room)
    for rank in range(4):
        first = [offer for offer in offers if offer.priority <= rank]
        alone = choose_fitting_versions(first, room)
        kept = [v is not None for o, v in zip(offers, versions, strict=True) if o.priority <= rank]
        assert kept == [v is not None for v in alone]


@pytest.mark.parametrize(
    "case", json.loads(GOLDEN.read_text(encoding="utf-8"))["cases"], ids=lambda case: case["title"]
)
def test_columns_are_packed(case: dict[str, Any]) -> None:
    found = compress_page_columns(case["columns"], case["units"])
    assert json.dumps(found) == json.dumps(case["packed"])  # which tells 1 from true


def test_equal_traces_are_equal_bytes() -> None:
    assert report() == as_html({"a.json": training()})
    assert carried(report())["compared"] is None  # nothing to compare it with


@pytest.mark.sweep
def test_every_table_is_what_the_command_line_prints(
    tmp_path: Path, load: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trace = load(named("aten::mm", 4))
    data = carried(as_html({"trace.json": trace}))
    tables = data["held"]["trace.json"]["tables"] + data["jobs"][0]["tables"]
    assert {table["view"] for table in tables} == set(VIEWS) - {"slice", "selection", "matches"}
    for table in tables:
        if table["view"] == "timeline":
            continue
        page = unpacked(table["packed"])
        words = [f"--{name.replace('_', '-')}={word(v)}" for name, v in table["options"].items()]
        done = CliRunner().invoke(
            app, ["view", table["view"], "trace.json", "--format=json", *words]
        )
        printed = json.loads(done.stdout)
        assert page["options"] == printed["options"]
        assert page["all"] == page["rows"] == len(printed["rows"])
        assert rows_of(page) == printed["rows"], table


def word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_the_advice_is_what_the_command_line_prints() -> None:
    held = carried(report())["held"]["a.json"]
    told = unpacked(held["advice"])
    printed = selftime.advise(training()).to_dict()
    assert {key: told[key] for key in ("format", "health", "step", "findings")} == {
        key: printed[key] for key in ("format", "health", "step", "findings")
    }


def test_the_markdown_to_copy_names_the_trace_by_its_file(load: Any) -> None:
    page = as_html({"a": load(named("aten::mm", 4), "my run.json")})
    told = unpacked(carried(page)["held"]["a"]["advice"])
    assert "`T='my run.json'`" in told["said"]["markdown"]
    folder = str(Path(load(named("aten::mm")).source).parent)
    assert folder not in json.dumps(told["said"])


@pytest.mark.sweep
def test_very_many_findings_and_rows_stay_below_the_limit(load: Any) -> None:
    trace = load(named("aten::mm_with_a_long_name_", 3000))
    where = Where("project/train.py", 7, "main")
    one = Finding(
        title="`aten::mm` is slow",
        where=where,
        evidence=(Evidence("time of `aten::mm`", 1.0, "ms", (1, 2, 3)),),
        saving=Saving(estimate_ms=1.0, low_ms=0.5, high_ms=1.5, method="model"),
        fix=Fix("Do less of `aten::mm`.", "for batch in loader:\n    step(batch)\n" * 20),
        confidence="high",
        semantics="neutral",
        rule="slow_input",
    )
    findings = tuple(
        replace(one, id=f"slow_input-{n}", title=f"`operator {n}` is slow") for n in range(2000)
    )
    page = as_html({"a": trace}, advice={"a": replace(advise(trace), findings=findings)})
    assert len(page.encode()) < LIMIT == 5_000_000
    told = unpacked(carried(page)["held"]["a"]["advice"])
    assert len(told["findings"]) == len(told["said"]["findings"]) == 2000


def test_the_timeline_is_whole_where_there_is_room() -> None:
    trace = training()
    tables = carried(report())["held"]["a.json"]["tables"]
    levels = [unpacked(t["packed"]) for t in tables if "pixels" in t["options"]]
    finest = min(levels, key=resolution)
    assert resolution(finest) == 1
    slices = [row for row in rows_of(finest) if row["kind"] == "slice"]
    told = {(row["id"], row["start"], row["duration"], row["name"]) for row in slices}
    assert told == set(
        trace.slices.select("id", "start", "duration", trace.slices["name"].cast(str)).iter_rows()
    )


def resolution(page: dict[str, Any]) -> float:
    options = page["options"]
    return float((options["end"] - options["start"]) / options["pixels"])


@pytest.mark.sweep
def test_a_long_timeline_is_thinned_to_what_fits(load: Any) -> None:
    trace = load(named("aten::mm", 30_000))
    page = as_html({"a": trace}, limit=least() + 60_000)
    tables = carried(page)["held"]["a"]["tables"]
    levels = [t["options"] for t in tables if "pixels" in t["options"]]
    assert levels
    assert all((o["end"] - o["start"]) / o["pixels"] > 1 for o in levels)


@pytest.mark.sweep
def test_long_tables_tell_how_long_they_are(load: Any) -> None:
    trace = load(named("aten::mm", 3000))
    page = as_html({"a": trace})
    whole = table(page, "operators")
    cut = table(as_html({"a": trace}, limit=least() + 15_000), "operators")
    assert whole["rows"] == whole["all"] == cut["all"] == 3000
    assert 300 <= cut["rows"] < 3000
    assert rows_of(cut) == rows_of(whole)[: cut["rows"]]
    assert cut["totals"] == whole["totals"] != {}


def table(page: str, view: str) -> dict[str, Any]:
    """The table of a view with its own options."""
    [told] = [
        unpacked(table["packed"])
        for table in carried(page)["held"]["a"]["tables"]
        if table["view"] == view and not table["options"]
    ]
    assert isinstance(told, dict)
    return told


@pytest.mark.parametrize("room", [5_000, 50_000, 500_000])
@pytest.mark.sweep
def test_it_stays_below_its_limit(room: int, load: Any) -> None:
    trace = load(named(f"{HOSTILE}{'x' * 3000}", 500))
    page = as_html({"a": trace}, limit=least() + room)
    assert least() < len(page.encode()) < least() + room


def test_names_do_nothing(load: Any) -> None:
    trace = load(named(HOSTILE), "<b>.json")
    page = as_html({HOSTILE: trace})
    found = elements(page)
    kinds = [attrs.get("type") for attrs, _ in found.of("script")]
    assert kinds == ["application/json", "text/plain", "text/plain", "module"]
    assert not found.of("b")
    assert carried(page)["traces"][0]["id"] == HOSTILE
    assert "alert(1)</script>" not in page


def test_the_policy_names_the_scripts_and_the_style_and_nothing_else() -> None:
    found = elements(report())
    [loader] = [text for attrs, text in found.of("script") if attrs.get("type") == "module"]
    [packed] = [text for attrs, text in found.of("script") if attrs.get("id") == "selftime-page"]
    page = unpacked(packed)
    assert not found.of("style")
    [policy] = [
        str(attrs["content"])
        for attrs, _ in found.of("meta")
        if attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'{hashed(loader)}' '{hashed(page['script'])}'"
    assert rules["style-src"] == f"'{hashed(page['style'])}'"
    assert "unsafe" not in policy
    assert "http" not in policy
    asking = {"src", "srcset", "action", "formaction", "poster", "ping", "background"}
    assert not [attrs for _, attrs in found.found if asking & attrs.keys()]
    assert [attrs["href"] for attrs, _ in found.of("link")] == ["data:,"]


def hashed(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def test_the_page_itself_takes_little_of_the_room() -> None:
    assert least() < 750_000, "compressed: it is in every output of a notebook"


def test_an_empty_recording_has_a_report() -> None:
    trace = Trace()
    held = carried(as_html({"empty.json": trace}))["held"]["empty.json"]
    assert unpacked(held["advice"])["health"]["verdict"] == "unusable"
    assert {t["view"] for t in held["tables"]} >= {"health", "operators", "timeline"}


@pytest.mark.sweep
def test_several_traces_share_the_room(load: Any) -> None:
    traces = {f"run/rank{n}.json": load(named(f"op{n}-", 200), f"rank{n}.json") for n in range(3)}
    data = carried(as_html(traces))
    assert [one["id"] for one in data["traces"]] == list(traces)
    assert {one["run"] for one in data["traces"]} == {"run"}
    small = as_html(traces, limit=least() + 60_000)
    for held in carried(small)["held"].values():
        assert {t["view"] for t in held["tables"]} >= {"overview", "steps", "operators"}


@pytest.mark.sweep
def test_more_traces_than_fit_are_refused() -> None:
    traces = {f"{n}.json": Trace() for n in range(3)}
    with pytest.raises(UsageError, match=r"has no room for 3 traces; .* `--trace NAME`"):
        as_html(traces, limit=10_000)


def test_source_goes_with_it_unless_not_wanted(tmp_path: Path, load: Any) -> None:
    source = tmp_path / "train.py"
    source.write_text("".join(f"line_{n} = {n}\n" for n in range(1, 200)))
    frame = {"ph": "X", "cat": "python_function", "pid": 1, "tid": 1, "dur": 50, "ts": 0}
    frame |= {"name": f"{source}(120): step", "args": {"Python id": 1}}
    document = named("aten::mm", 3)
    document["traceEvents"].append(frame)
    trace = load(document)
    held = carried(as_html({"a": trace}))["held"]["a"]
    assert list(held["sources"]) == [str(source)]
    file = unpacked(held["sources"][str(source)])
    [part] = file["parts"]
    assert file["count"] == 199
    assert part["lines"][120 - part["from"]] == "line_120 = 120"
    assert carried(as_html({"a": trace}, shows_source=False))["held"]["a"]["sources"] == {}
