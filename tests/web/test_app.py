import gzip
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.test import Client
from werkzeug.wrappers import Response

from selftime import advise, load
from selftime.errors import SelftimeError
from selftime.reports.page_data import assets
from selftime.reports.page_data.advice import advice_data
from selftime.trace import Trace
from selftime.views import VIEWS
from selftime.web import PageApp, TracesAtPaths

HUGE = "9" * 30


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A page that is built, whatever this checkout has."""
    static = tmp_path / "package" / "static"
    static.mkdir(parents=True)
    for name in ("index.html", "app.js", "app.css"):
        (static / name).write_text(f"{name} " * 400)
    monkeypatch.setattr(assets, "files", lambda _package: tmp_path / "package")
    assets._read_page_file.cache_clear()
    yield
    assets._read_page_file.cache_clear()


def ask(client: Client, address: str) -> Any:
    return client.get(address).json


def error(answer: Any) -> str:
    assert answer.content_type == "application/json"
    told = answer.json
    assert set(told) == {"error"}
    assert "\n" not in told["error"]
    assert "Traceback" not in told["error"]
    return str(told["error"])


def test_traces_are_listed_by_id(client: Client) -> None:
    [listed] = ask(client, "/api/traces")["traces"]
    assert listed["name"] == "trace.json"
    assert listed["bytes"] > 0
    assert (listed["device"], listed["steps"]) == (None, None)
    where = {"id", "name", "run", "worker", "span", "bytes", "job", "is_ledger", "modified"}
    assert set(listed) == where | {"device", "steps"}


def test_an_operator_is_a_row(client: Client, trace: str) -> None:
    page = ask(client, f"/api/view/operators?.trace={trace}&.find=MM")
    column = page["columns"]["name"]
    assert [column["texts"][code] for code in column["codes"]] == ["aten::mm"]
    assert page["columns"]["count"] == {"values": [2]}
    assert page["options"]["by"] == "name"


def test_advice_is_that_of_the_command(client: Client, trace: str, tmp_path: Path) -> None:
    loaded = load(tmp_path / "trace.json")
    assert isinstance(loaded, Trace)
    assert ask(client, f"/api/advice?.trace={trace}") == advice_data(advise(loaded))


def test_a_rule_has_a_page(client: Client) -> None:
    assert ask(client, "/api/rule/slow_input")["text"].startswith("# slow_input\n\n")


def test_a_table_is_csv_with_all_rows_that_match(client: Client, trace: str) -> None:
    answer = client.get(f"/api/view/operators.csv?.trace={trace}&.find=aten&.sort=name&.rows=1")
    assert answer.content_type == "text/csv; charset=utf-8"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="operators.csv"'
    assert [line.split(",")[0] for line in answer.text.splitlines()] == [
        "name",
        "aten::add",
        "aten::mm",
    ]


def test_a_table_is_csv_with_the_columns_asked_for(client: Client, trace: str) -> None:
    answer = client.get(f"/api/view/operators.csv?.trace={trace}&.columns=count,name&.sort=name")
    assert answer.text.splitlines()[:2] == ["count,name", "1,<script>alert(1)</script>"]


@pytest.mark.parametrize(
    ("address", "status", "sentence"),
    [
        ("/api/view/nonesuch?.trace={}", 400, "no view `nonesuch`"),
        ("/api/view/operators?.trace=nonesuch", 400, "no trace `nonesuch`"),
        ("/api/view/operators", 400, "no trace ``"),
        ("/api/view/operators?.trace={}&by=nonesuch", 400, "nonesuch"),
        ("/api/view/operators?.trace={}&nonesuch=1", 400, "no option `nonesuch`"),
        ("/api/view/operators?.trace={}&.nonesuch=1", 400, "no parameter `.nonesuch`"),
        ("/api/view/operators?.trace={}&.sort=nonesuch", 400, "no column `nonesuch`"),
        ("/api/view/operators?.trace={}&.rows=-1", 400, "whole number"),
        ("/api/view/operators?.trace={}&.from=x", 400, "whole number"),
        (f"/api/view/operators?.trace={{}}&top={HUGE}", 400, "smaller"),
        (f"/api/view/timeline?.trace={{}}&pixels={HUGE}", 400, "smaller"),
        ("/api/view/flame?.trace={}&min_share=nan", 400, "smaller"),
        ("/api/view/flame?.trace={}&min_share=inf", 400, "smaller"),
        ("/api/view/operators?.trace={}&.where=x", 400, "not a list of filters"),
        ("/api/view/operators?.trace={}&.where=[1]", 400, "not a list of filters"),
        ("/api/view/operators?.trace={}&.where=[{{}}]", 400, "not a list of filters"),
        ("/api/view/operators?.trace={}&.where=" + "[" * 5000, 400, "not a list of filters"),
        ("/api/view/operators?.trace={}&.find=" + "x" * 9000, 400, "characters"),
        ("/api/view/operators?" + "x" * 20_000, 414, "too long"),
        ("/api/rule/nonesuch", 400, "no rule `nonesuch`"),
        ("/api/advice?.trace=../../etc/passwd", 400, "no trace"),
        ("/api/source?.trace={}&file=a.py&from=x", 400, "whole number"),
        ("/api/nonesuch", 404, "nothing at this address"),
        ("/nonesuch", 404, "nothing at this address"),
        ("/../pyproject.toml", 404, "nothing at this address"),
        ("/%2e%2e/%2e%2e/etc/passwd", 404, "nothing at this address"),
        ("//etc/passwd", 404, "nothing at this address"),
        ("/static/app.js", 404, "nothing at this address"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(
    client: Client, trace: str, address: str, status: int, sentence: str
) -> None:
    answer = client.get(address.format(trace))
    assert answer.status_code == status
    assert sentence in error(answer)


def test_huge_windows_are_empty_ones(client: Client, trace: str) -> None:
    page = ask(client, f"/api/view/operators?.trace={trace}&.from={'9' * 19}&.rows={'9' * 19}")
    assert page["rows"] == 0
    assert page["total"] > 0


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(client: Client, method: str) -> None:
    answer = client.open("/api/traces", method=method, data=b"x")
    assert answer.status_code == 405
    assert answer.headers["Allow"] == "GET, HEAD"
    assert "only answers GET" in error(answer)


def test_head_is_get_without_the_content(client: Client) -> None:
    answer = client.head("/api/views")
    assert answer.status_code == 200
    assert answer.data == b""


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    "address", ["/", "/app.js", "/app.css", "/api/traces", "/api/nonesuch", "/nonesuch"]
)
def test_every_answer_is_confined(client: Client, address: str) -> None:
    headers = client.get(address).headers
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["base-uri"] == policy["form-action"] == policy["font-src"] == "'none'"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Cache-Control"] == (
        "no-store" if "nonesuch" in address or "api" in address else "no-cache"
    )
    assert not [name for name, _ in headers if name.lower().startswith("access-control")]


@pytest.mark.usefixtures("built")
def test_the_page_is_handed_out(client: Client) -> None:
    assert client.get("/").text.startswith("index.html ")
    script = client.get("/app.js")
    assert script.content_type == "text/javascript; charset=utf-8"
    again = client.get("/app.js", headers={"If-None-Match": script.headers["ETag"]})
    assert again.status_code == 304
    assert again.data == b""


def test_a_page_that_was_not_built_is_told(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assets, "files", lambda _package: tmp_path)
    assets._read_page_file.cache_clear()
    assert "is not built into this installation" in error(client.get("/"))
    with pytest.raises(SelftimeError, match="install selftime again"):
        assets.assets()


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("address", ["/app.js", "/api/views"])
def test_answers_are_compressed_for_who_reads_that(client: Client, address: str) -> None:
    plain = client.get(address)
    packed = client.get(address, headers={"Accept-Encoding": "gzip, br"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in packed.headers["Vary"]
    assert int(packed.headers["Content-Length"]) == len(packed.data) < len(plain.data)
    assert gzip.decompress(packed.data) == plain.data
    refused = client.get(address, headers={"Accept-Encoding": "gzip;q=0"})
    assert "Content-Encoding" not in refused.headers


@pytest.mark.usefixtures("built")
def test_it_works_under_a_prefix_that_it_is_told(client: Client, trace: str) -> None:
    mounted = Client(DispatcherMiddleware(Response("", 404), {"/data/plugin": client.application}))
    assert mounted.get("/data/plugin/").text.startswith("index.html ")
    assert mounted.get("/data/plugin/app.js").status_code == 200
    page = ask(mounted, f"/data/plugin/api/view/operators?.trace={trace}")
    assert page == ask(client, f"/api/view/operators?.trace={trace}")
    moved = mounted.get("/data/plugin?token=x")
    assert (moved.status_code, moved.headers["Location"]) == (302, "plugin/?token=x")


@pytest.mark.usefixtures("built")
def test_it_names_no_address_that_a_stripping_proxy_would_break(client: Client) -> None:
    """A proxy that cuts `/user/me/proxy/6070` off tells nothing of it."""
    for address in ("/", "/api/traces", "/api/views"):
        answer = client.get(address)
        assert "Location" not in answer.headers
        assert "localhost" not in answer.text


def test_a_file_that_is_no_trace_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    client = Client(PageApp(TracesAtPaths([str(path)])))
    [listed] = ask(client, "/api/traces")["traces"]
    answer = client.get(f"/api/view/operators?.trace={listed['id']}")
    assert answer.status_code == 422
    assert "cannot be read" in error(answer)
    told = client.get(answer.request.url, headers={"Selftime-Page": "1"})
    assert told.status_code == 200
    assert error(told) == error(answer)


def test_a_trace_that_is_gone_is_told(client: Client, trace: str, tmp_path: Path) -> None:
    (tmp_path / "trace.json").unlink()
    answer = client.get(f"/api/view/operators?.trace={trace}")
    assert answer.status_code == 422
    assert "No such file" in error(answer)


def test_a_fault_of_ours_is_logged_and_told(
    client: Client, trace: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_words: object) -> bytes:
        raise ZeroDivisionError("secret")

    application: Any = client.application
    monkeypatch.setattr(application.answers, "view_page_json", fail)
    with caplog.at_level(logging.ERROR, "selftime"):
        answer = client.get(f"/api/view/operators?.trace={trace}")
    assert answer.status_code == 500
    assert "fault of selftime (ZeroDivisionError)" in error(answer)
    assert "secret" not in answer.text
    assert "ZeroDivisionError: secret" in caplog.text


def test_views_are_those_of_the_command_line(client: Client) -> None:
    views = {view["name"]: view for view in ask(client, "/api/views")["views"]}
    assert list(views) == list(VIEWS)
    for name, view in VIEWS.items():
        assert [c["name"] for c in views[name]["columns"]] == [c.name for c in view.columns]
        assert [o["name"] for o in views[name]["options"]] == list(view.options)
        assert views[name]["title"] == view.title
    by_name = {option["name"]: option for option in views["kernels"]["options"]}
    assert by_name["by"]["type"] == "choice"
    assert by_name["counted"] == {
        "name": "counted",
        "type": "flag",
        "default": False,
        "choices": [],
        "parts": [],
    }
    assert json.dumps(views)
