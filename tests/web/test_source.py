"""Only the program's own source is shown, whatever a trace names."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import Client

from selftime.web import PageApp, TracesAtPaths

TEXT = "import torch\n\ndef main():\n    torch.mm(a, b)\n"

Ask = Callable[..., Any]


@pytest.fixture
def show(write: Callable[..., Path]) -> Ask:
    """What the page is told of a file, by a trace whose frames name some files."""

    def show(file: str, *, named: list[str] | None = None, app: Any = None, **words: str) -> Any:
        files = [file] if named is None else named
        events = [
            {
                "ph": "X",
                "cat": "python_function",
                "name": f"{name}(3): main",
                "pid": 1,
                "tid": 1,
                "ts": 10 * place,
                "dur": 5,
                "args": {"Python id": place},
            }
            for place, name in enumerate(files, 1)
        ]
        client = Client(app or PageApp(TracesAtPaths([str(write(events=events))])))
        listed: Any = client.get("/api/traces").json
        words = {".trace": listed["traces"][0]["id"], "file": file, **words}
        answer = client.get("/api/source", query_string=words)
        assert answer.status_code == 200
        told: Any = answer.json
        return told["source"]

    return show


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(TEXT)
    return path


def test_lines_of_a_file_that_the_trace_names(show: Ask, program: Path) -> None:
    told = show(str(program), **{"from": "3", "rows": "2"})
    assert told == {
        "file": str(program),
        "from": 3,
        "lines": ["def main():", "    torch.mm(a, b)"],
        "count": 4,
    }


def test_lines_of_a_relative_file_beside_the_trace(show: Ask, program: Path) -> None:
    assert show(program.name, rows="1")["lines"] == ["import torch"]


def test_lines_of_a_file_that_a_stack_names(write: Callable[..., Path], program: Path) -> None:
    stack = f"torch/nn/modules/module.py(1): _call;{program}(4): main"
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
    trace = write(events=[{**event, "args": {"Call stack": stack}}])
    client = Client(PageApp(TracesAtPaths([str(trace)])))
    listed: Any = client.get("/api/traces").json
    words = {".trace": listed["traces"][0]["id"], "file": str(program), "rows": "1"}
    told: Any = client.get("/api/source", query_string=words).json
    assert told["source"]["lines"] == ["import torch"]


def test_a_window_beyond_the_end_is_the_last_line(show: Ask, program: Path) -> None:
    assert show(str(program), **{"from": "99", "rows": "9"})["lines"] == ["    torch.mm(a, b)"]


def test_no_file_that_the_trace_does_not_name(show: Ask, program: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text("SECRET = 1\n")
    for asked in ("other.py", str(other), f"{program}/../other.py", "./train.py", "train"):
        assert show(asked, named=[str(program)]) is None, asked
    assert show("ain.py", named=[str(program)]) is None
    assert show("other.py", named=[f"{tmp_path}/other.py", "x"]) is None


def test_nothing_where_source_is_not_shown(
    show: Ask, program: Path, write: Callable[..., Path]
) -> None:
    app = PageApp(TracesAtPaths([str(write())]), shows_source=False)
    assert show(str(program), app=app) is None


@pytest.mark.parametrize(
    "file",
    [
        "/etc/passwd",
        "/proc/self/environ",
        "/dev/zero",
        "/dev/zero/.py",
        "x\0.py",
        "",
        ".",
        "/",
        ".py",
    ],
)
def test_no_file_that_is_not_pythons_by_its_name(show: Ask, file: str) -> None:
    assert show(file) is None


def test_no_folder_that_is_called_as_a_program(show: Ask, tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    assert show(str(tmp_path / "folder.py")) is None


def test_no_link_to_what_is_no_program(show: Ask, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("SECRET")
    (tmp_path / "link.py").symlink_to(secret)
    (tmp_path / "circle.py").symlink_to(tmp_path / "circle.py")
    (tmp_path / "passwords.py").symlink_to("/etc/passwd")
    for name in ("link.py", "circle.py", "passwords.py"):
        assert show(str(tmp_path / name)) is None, name


def test_a_link_to_a_program_is_followed(show: Ask, program: Path, tmp_path: Path) -> None:
    (tmp_path / "link.py").symlink_to(program)
    assert show(str(tmp_path / "link.py"))["count"] == 4


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_no_pipe_is_waited_for(show: Ask, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    assert stat.S_ISFIFO((tmp_path / "pipe.py").stat().st_mode)
    assert show(str(tmp_path / "pipe.py")) is None


def test_no_file_that_is_too_large_to_be_a_program(show: Ask, tmp_path: Path) -> None:
    with (tmp_path / "data.py").open("wb") as file:
        file.truncate(1 << 40)  # of holes
    assert show(str(tmp_path / "data.py")) is None


def test_long_lines_are_cut_and_bytes_are_text(show: Ask, tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_bytes(b"x" * 100_000 + b"\n\xff\xfe\n")
    told = show(str(tmp_path / "odd.py"), rows="9")
    assert len(told["lines"][0]) == 2000
    assert told["lines"][1] == "\ufffd\ufffd"
