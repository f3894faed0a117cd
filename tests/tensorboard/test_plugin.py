"""The plugin inside TensorBoard's own app: its tab, its addresses, its headers."""

import gzip
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from werkzeug.test import Client

from selftime.errors import SelftimeError
from selftime.reports.page_data import assets
from selftime.tensorboard import Loader, sources
from selftime.tensorboard import logdir_watch as watching
from selftime.tensorboard import plugin as plugins

if TYPE_CHECKING:
    from tests.tensorboard.conftest import Board, Context, Logs

HERE: Final = "/data/plugin/selftime"


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every question looks, and waits until the look has ended."""
    monkeypatch.setattr(watching, "_MIN_PAUSE_BETWEEN_SEARCHES_S", 0.0)
    monkeypatch.setattr(watching, "_MIN_RATIO_OF_PAUSE_TO_SEARCH_TIME", 0)
    monkeypatch.setattr(plugins, "_MAX_WAIT_IN_FIRST_IS_ACTIVE_S", 60.0)
    monkeypatch.setattr(plugins, "_MAX_WAIT_IN_LATER_IS_ACTIVE_S", 60.0)
    monkeypatch.setattr(sources, "_MAX_WAIT_FOR_SEARCH_S", 60.0)


@pytest.fixture(autouse=True)
def _content(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """TensorBoard's watch over security has nothing to say."""
    with caplog.at_level(logging.WARNING):
        logging.getLogger("tensorboard").propagate = True
        yield
    assert "will become an error" not in caplog.text


def tab(board: Client, prefix: str = "") -> Any:
    told: Any = board.get(f"{prefix}/data/plugins_listing").json
    return told["selftime"]


def listed(board: Client, prefix: str = "") -> list[dict[str, Any]]:
    told: Any = board.get(f"{prefix}{HERE}/api/traces").json
    return list(told["traces"])


def test_tensorboard_finds_the_plugin_by_its_entry_point() -> None:
    (found,) = entry_points(group="tensorboard_plugins", name="selftime")

    assert found.load() is Loader


def test_without_traces_there_is_no_tab(board: "Board") -> None:
    assert tab(board())["enabled"] is False
    assert listed(board()) == []


def test_a_logdir_that_is_not_there_yet(board: "Board", logs: "Logs", tmp_path: Path) -> None:
    later = board(logdir=str(tmp_path / "later"))
    assert tab(later)["enabled"] is False
    logs.write("../later/run/a.1.pt.trace.json")

    assert tab(later)["enabled"] is True


def test_a_trace_makes_the_tab(board: "Board", logs: "Logs") -> None:
    logs.write("run/worker.1.pt.trace.json.gz")

    assert tab(board()) == {
        "disable_reload": True,
        "enabled": True,
        "loading_mechanism": {"type": "IFRAME", "module_path": f"{HERE}/entry.js"},
        "remove_dom": False,
        "tab_name": "selftime",
    }


def test_runs_workers_and_spans(board: "Board", logs: "Logs") -> None:
    for name, age in (
        ("new/plugins/profile/r/gpu_10.5.pt.trace.json.gz", 50),
        ("new/plugins/profile/r/gpu_2.30.pt.trace.json", 300),
        ("new/plugins/profile/r/gpu_2.4.pt.trace.json", 300),
        ("old/a.pt.trace.json", 200),
        ("b.json", 100),
    ):
        logs.write(name, age_s=age)

    assert [(one["run"], one["worker"], one["span"]) for one in listed(board())] == [
        ("new/r", "gpu_2", "4"),
        ("new/r", "gpu_2", "30"),
        ("new/r", "gpu_10", "5"),
        ("logs", "b", ""),
        ("old", "a", ""),
    ]


def test_several_logdirs_with_names(board: "Board", logs: "Logs") -> None:
    logs.write("one/x.pt.trace.json", age_s=60)
    logs.write("two/y/z.pt.trace.json", age_s=90)
    spec = f"first:{logs.root}/one,{logs.root}/two,{logs.root}/one"

    assert [one["run"] for one in listed(board(logdir="", logdir_spec=spec))] == ["first", "y"]


@pytest.mark.parametrize("prefix", ["", "/some/prefix", "/experiment/77"])
def test_every_address_is_relative(prefix: str, board: "Board", logs: "Logs") -> None:
    logs.write("run/a.1.pt.trace.json")
    told = board("" if prefix.startswith("/experiment") else prefix)
    (trace,) = listed(told, prefix)

    assert tab(told, prefix)["loading_mechanism"]["module_path"] == f"{prefix}{HERE}/entry.js"
    frame = told.get(f"{prefix}/data/plugin_entry.html?name=selftime")
    assert "./entry.js" in frame.text
    for name in ("entry.js", "api/views", "api/rule/slow_input"):
        assert told.get(f"{prefix}{HERE}/{name}").status_code == 200
    page: Any = told.get(f"{prefix}{HERE}/api/view/operators?.trace={trace['id']}").json
    assert page["columns"]["name"]["texts"] == ["aten::mm"]
    table = told.get(f"{prefix}{HERE}/api/view/operators.csv?.trace={trace['id']}")
    assert table.text.count("aten::mm") == 1


def test_two_traces_are_compared(board: "Board", logs: "Logs") -> None:
    for name in ("before", "after"):
        logs.write(f"{name}/a.1.pt.trace.json")
    told = board()
    before, after = listed(told)
    asked = f"{HERE}/api/compare?.trace={before['id']}&.with={after['id']}"
    found: Any = told.get(asked).json
    assert found["metric"] == "host"
    tree = found["tables"]["tree"]["columns"]
    assert tree["name"]["texts"] == ["aten::mm"]
    assert tree["difference"]["values"] == [0]
    refused = told.get(f"{HERE}/api/compare?.trace={before['id']}&.with=none")
    assert (refused.status_code, "no trace `none` in the logdir" in refused.text) == (400, True)


def test_errors_are_one_sentence(board: "Board", logs: "Logs") -> None:
    logs.write("run/a.1.pt.trace.json")
    told = board()
    for address, status, text in (
        ("api/view/operators?.trace=none", 400, "no trace `none` in the logdir"),
        ("api/view/nothing?.trace=x", 400, "nothing"),
        ("nothing", 404, "nothing at this address"),
        ("api/../../../x", 404, "nothing at this address"),
    ):
        answer = told.get(f"{HERE}/{address}")
        assert (answer.status_code, text in answer.text) == (status, True)
    assert told.post(f"{HERE}/api/traces").status_code == 405


@pytest.fixture
def _page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of the page, whether it was built here or not."""

    def made(name: str) -> assets.PageFile:
        return assets.PageFile(name, assets._MEDIA_TYPE_BY_FILE[name], b"content", "tag")

    monkeypatch.setattr(assets, "_read_page_file", made)


@pytest.mark.usefixtures("_page")
def test_the_page_may_be_framed_by_whoever_frames_tensorboard(board: "Board") -> None:
    page = board().get(f"{HERE}/index.html")

    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert "frame-ancestors" not in page.headers["Content-Security-Policy"]
    assert "X-Frame-Options" not in page.headers


@pytest.mark.usefixtures("_page")
@pytest.mark.parametrize("name", ["index.html", "app.js", "app.css"])
def test_what_did_not_change_is_not_sent_again(name: str, board: "Board") -> None:
    told = board()
    first = told.get(f"{HERE}/{name}")
    again = told.get(f"{HERE}/{name}", headers={"If-None-Match": first.headers["ETag"]})

    assert (again.status_code, again.data) == (304, b"")
    assert again.headers["Content-Type"] == first.headers["Content-Type"]
    assert again.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.usefixtures("_page")
def test_the_module_opens_the_page(board: "Board") -> None:
    script = board().get(f"{HERE}/entry.js")

    assert script.mimetype == "text/javascript"
    assert script.headers["X-Content-Type-Options"] == "nosniff"
    assert 'new URL("index.html", import.meta.url)' in script.text


def test_a_page_that_was_not_built_is_said_in_the_tab(
    board: "Board", monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: str) -> assets.PageFile:
        raise SelftimeError("it is not built; </script> install it again")

    monkeypatch.setattr(assets, "_read_page_file", missing)
    script = board().get(f"{HERE}/entry.js").text

    assert "selftime: it is not built" in script
    assert "export function render()" in script


def test_a_file_that_vanished_is_said_in_a_sentence(board: "Board", logs: "Logs") -> None:
    path = logs.write("run/a.1.pt.trace.json")
    told = board()
    (trace,) = listed(told)
    path.unlink()
    answer = told.get(f"{HERE}/api/advice?.trace={trace['id']}")

    assert answer.status_code == 422
    assert "No such file" in answer.text
    assert tab(told)["enabled"] is False


def test_a_file_that_was_written_further_is_read_anew(board: "Board", logs: "Logs") -> None:
    whole = logs.write("run/a.1.pt.trace.json.gz").read_bytes()
    path = logs.root / "run" / "a.1.pt.trace.json.gz"
    path.write_bytes(gzip.compress(b""))
    logs.date(path, 30)
    told = board()
    (trace,) = listed(told)
    asked = f"{HERE}/api/view/operators?.trace={trace['id']}"
    assert told.get(asked).status_code == 422
    path.write_bytes(whole)
    page: Any = told.get(asked).json

    assert page["total"] == 1


@pytest.mark.parametrize(
    ("flags", "is_shown"),
    [
        ({}, True),
        ({"host": "localhost"}, True),
        ({"host": "127.0.0.1"}, True),
        ({"host": "0.0.0.0"}, False),  # noqa: S104 - that is what is tested
        ({"bind_all": True}, False),
    ],
)
def test_source_is_shown_only_to_this_machine(
    flags: dict[str, Any], is_shown: bool, board: "Board", logs: "Logs", tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text("first\nsecond\n")
    frame = {
        "ph": "X",
        "cat": "python_function",
        "name": f"{program}(1): main",
        "pid": 1,
        "tid": 1,
        "ts": 1,
        "dur": 2,
        "args": {"Python id": 1, "Python parent id": None},
    }
    logs.write("run/a.1.pt.trace.json", {"schemaVersion": 1, "traceEvents": [frame]})
    told = board(**flags)
    (trace,) = listed(told)
    asked = f"{HERE}/api/source?.trace={trace['id']}&file={program}&from=1&rows=9"
    answer: Any = told.get(asked).json

    assert (answer["source"] is not None) is is_shown


def test_a_plugin_that_cannot_be_made_is_left_out(
    context: "Context", monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(_: Any) -> Any:
        raise RuntimeError("of whatever kind")

    monkeypatch.setattr(plugins, "logdirs", failing)

    assert Loader().load(context()) is None
    assert "without the tab of selftime" in caplog.text


def test_the_list_of_tabs_does_not_wait_for_a_slow_folder(
    board: "Board", monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look that never ends: the list comes in spite of it."""
    monkeypatch.setattr(plugins, "_MAX_WAIT_IN_FIRST_IS_ACTIVE_S", 0.01)
    end = threading.Event()
    monkeypatch.setattr(watching.LogdirWatch, "_search_logdir_once", lambda _: end.wait())

    assert tab(board())["enabled"] is False
    end.set()


_ALONE: Final = """
import sys
from argparse import Namespace
from tensorboard.plugins.base_plugin import TBContext
for name in sys.argv[2].split():
    sys.modules[name] = None
from selftime.tensorboard import Loader
flags = Namespace(logdir=sys.argv[1], logdir_spec="", host=None, bind_all=False)
plugin = Loader().load(TBContext(logdir=sys.argv[1], flags=flags))
for watch in plugin._watches:
    watch.found_traces(max_wait_s=600)
heavy = ("polars", "torch", "selftime.web")
print(plugin.is_active(), [name for name in heavy if sys.modules.get(name)])
question = {"PATH_INFO": "/data/plugin/selftime/entry.js"}
for answer in plugin.get_plugin_apps()["/*"](question, print):
    print(answer.decode())
"""


def alone(logs: "Logs", missing: str = "") -> str:
    """The plugin in a process of its own, without some packages."""
    command = [sys.executable, "-c", _ALONE, str(logs.root), missing]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    return done.stdout


def test_with_nothing_to_show_nothing_is_loaded(logs: "Logs") -> None:
    (logs.root / "events.out.tfevents.1").touch()

    assert alone(logs).startswith("False []\n")


def test_a_broken_installation_is_said_in_the_tab(logs: "Logs") -> None:
    logs.write("a.pt.trace.json")
    told = alone(logs, "polars")

    assert told.startswith("True []\n")
    assert "selftime: import of polars halted" in told
