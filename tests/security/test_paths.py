"""Folders and files that somebody else prepared, or that a trace names, lead nowhere."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.security.adversary import PAYLOADS, recording
from werkzeug.test import Client
from werkzeug.wrappers import Response

from selftime.cli.output_writing import write_output
from selftime.errors import SelftimeError
from selftime.ingest.load import load
from selftime.ingest.trace_cache import TraceCache, can_only_user_write_to_folder
from selftime.tensorboard.plugin_requests import PluginRequestHandler
from selftime.trace import Trace
from selftime.web.caches import AnswerStore

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the rights of POSIX")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "cache"
    monkeypatch.setenv("SELFTIME_CACHE", str(root))
    return root


def read(path: Path) -> Trace:
    path.write_bytes(recording(PAYLOADS[:2]))
    trace = load(path)
    assert isinstance(trace, Trace)
    return trace


def test_the_cache_is_the_users_alone(root: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        read(tmp_path / "trace.json")
        AnswerStore().store(b"answer", "question")
    finally:
        os.umask(before)
    for folder in (root, *root.iterdir()):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder
        assert can_only_user_write_to_folder(folder)


def test_no_name_becomes_a_path(root: Path, tmp_path: Path) -> None:
    (tmp_path / "..;$(id)").mkdir()
    read(tmp_path / "..;$(id)" / "\x1b[31m.json")
    AnswerStore().store(b"answer", *PAYLOADS)
    names = [path.name for path in root.rglob("*") if path.parent != root]
    assert names
    assert all(name.isalnum() or name in {"manifest.json", "tables.columns"} for name in names)


def opened_to_others(folder: Path) -> None:
    folder.chmod(0o777)


def moved_behind_a_link(folder: Path) -> None:
    elsewhere = folder.rename(folder.with_name(f"elsewhere-{folder.name}"))
    folder.symlink_to(elsewhere)


@pytest.mark.parametrize("spoil", [opened_to_others, moved_behind_a_link])
def test_a_folder_that_others_may_have_filled_is_not_used(
    spoil: Callable[[Path], None], root: Path, tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    read(path)
    AnswerStore().store(b"answer", "question")
    mark = next(TraceCache().index.iterdir()).name
    assert TraceCache().find_by_file_stamp(mark, "") is not None
    assert AnswerStore().find("question") == b"answer"
    for folder in (TraceCache().index, TraceCache().entries, AnswerStore().folder):
        spoil(folder)
        assert not can_only_user_write_to_folder(folder)
    held = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    assert TraceCache().find_by_file_stamp(mark, "") is None
    assert AnswerStore().find("question") is None
    load(path)
    AnswerStore().store(b"another", "question")
    assert held == {path: path.stat().st_mtime_ns for path in root.rglob("*")}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give")
@pytest.mark.usefixtures("root")
def test_a_folder_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    read(tmp_path / "trace.json")
    os.chown(TraceCache().entries, 65534, 65534)
    assert not can_only_user_write_to_folder(TraceCache().entries)
    assert TraceCache().find_by_file_stamp(next(TraceCache().index.iterdir()).name, "") is None


def planted_link(path: Path) -> None:
    path.symlink_to("precious")


def planted_link_to_nothing(path: Path) -> None:
    path.symlink_to("nothing")


def planted_pipe(path: Path) -> None:
    os.mkfifo(path, 0o666)


def planted_file(path: Path) -> None:
    path.write_text("planted")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give")
@pytest.mark.parametrize(
    "plant", [planted_link, planted_link_to_nothing, planted_pipe, planted_file]
)
def test_output_does_not_go_where_somebody_else_leads_it(
    plant: Callable[[Path], None], tmp_path: Path
) -> None:
    """In a folder such as /tmp: to a file that only we may write, or to one that they may read."""
    tmp_path.chmod(0o1777)
    precious, output = tmp_path / "precious", tmp_path / "out.csv"
    precious.write_text("mine")
    plant(output)
    os.chown(output, 65534, 65534, follow_symlinks=False)
    before = output.lstat()
    with pytest.raises(SelftimeError, match="another user created it in a folder that everybody"):
        write_output("page", to=output)
    assert output.lstat() == before
    assert precious.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "precious"]


@pytest.mark.parametrize("plant", [planted_link, planted_link_to_nothing, planted_file])
def test_output_goes_where_we_lead_it_ourselves(
    plant: Callable[[Path], None], tmp_path: Path
) -> None:
    tmp_path.chmod(0o1777)
    plant(tmp_path / "out.csv")
    before = (tmp_path / "out.csv").is_symlink()
    write_output("page", to=tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "page"
    assert (tmp_path / "out.csv").is_symlink() == before


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:6006", b"app"),
        ("127.0.0.1", b"app"),
        ("[::1]:6006", b"app"),
        ("evil.example:6006", b"null"),
        ("localhost.evil.example", b"null"),
        ("", b"null"),
    ],
)
def test_tensorboard_shows_lines_to_who_asks_by_this_machines_name(
    host: str, status: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = PluginRequestHandler((), url_prefix="/data/plugin/selftime", shows_source=True)
    monkeypatch.setattr(mount, "_app", Response("app"))

    def ask(environ: dict[str, Any], start: Any) -> Any:
        return mount({**environ, "HTTP_HOST": host}, start)

    assert status in Client(ask).get("/data/plugin/selftime/api/source").data
