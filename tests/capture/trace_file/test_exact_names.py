"""Names in our recordings are those that the program gave, in whatever letters."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import selftime
from selftime.ingest.load import load

torch = pytest.importorskip("torch")

from selftime.capture.trace_file.trace_corrections import TraceCorrections  # noqa: E402 - torch is looked for first

if TYPE_CHECKING:
    from tests.capture.conftest import ReadTrace, Runner

pytestmark = pytest.mark.torch

NAMES = [
    *("größe 🚀", "学習", "обучение", "עברית", "e\u0301", "a\u2028b", "\U0001f468\u200d\U0001f469"),
    *('a "quoted" name', "back\\slash", "line\nfeed", "tab\there", "bell\x07", "delete\x7f"),
    *("unknown", "", "plain", "it's", "</script>", "{}", '",\n    "pid": 7', "é" * 3000),
]

TRAINING = """
    import os
    import torch
    import größe

    class Schätzer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.schicht = torch.nn.Linear(16, 1)

        def forward(self, x):
            with torch.profiler.record_function("größe 🚀"):
                return self.schicht(x)

    def 学習する(netz, x):
        return größe.quadrat(netz(x)).mean()

    netz = Schätzer()
    optimizer = torch.optim.SGD(netz.parameters(), lr=0.1)
    for step in range(20):
        学習する(netz, torch.randn(8, 16)).backward()
        optimizer.step()
        optimizer.zero_grad()
"""

NOT_UTF8 = os.fsdecode(b"m\xff")


def named(trace: dict[str, Any], category: str) -> list[str]:
    events = trace["traceEvents"]
    return [event["name"] for event in events if event.get("cat") == category]


def recorded() -> Any:
    with selftime.profile(with_stack=True) as prof:
        for name in NAMES:
            with selftime.record_function(name):
                torch.ones(3)
    return prof


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_a_file_has_the_names_of_the_program(
    tmp_path: Path, read_trace: "ReadTrace", name: str
) -> None:
    recorded().write_trace(tmp_path / name)

    assert named(read_trace(tmp_path / name), "user_annotation") == NAMES


def test_so_has_the_file_of_pytorchs_writer_in_python(
    tmp_path: Path, read_trace: "ReadTrace"
) -> None:
    recorded().write_trace(tmp_path / "trace.json", use_python_export=True)

    found = named(read_trace(tmp_path / "trace.json"), "user_annotation")
    since_2_14 = [name.replace('"', "'") for name in NAMES]
    assert found in (NAMES, since_2_14)


def test_so_have_the_tables_and_the_trace_that_is_read(tmp_path: Path) -> None:
    prof = recorded()
    rows = {row.key for row in prof.key_averages()}
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = load(tmp_path / "trace.json", cache=False)

    assert set(NAMES) <= rows
    assert isinstance(trace, selftime.Trace)
    assert set(NAMES) - {""} <= set(trace.slices["name"].cast(str).to_list())


def test_a_file_is_the_same_when_it_is_written_again(tmp_path: Path) -> None:
    prof = recorded()
    for name in ("one.json", "two.json"):
        prof.write_trace(tmp_path / name)
    one, two = ((tmp_path / name).read_bytes() for name in ("one.json", "two.json"))

    assert one == two.replace(b"two.json", b"one.json")


@pytest.mark.parametrize("size", [1, 61, 4096])
def test_names_are_put_right_wherever_the_text_is_cut(tmp_path: Path, size: int) -> None:
    prof = recorded()
    path = tmp_path / "torchs.json"
    torch.profiler.profile.export_chrome_trace(prof, str(path))
    text = path.read_bytes()
    corrections = TraceCorrections.from_events(prof.profiler.kineto_results.events())
    pieces = [text[at : at + size] for at in range(0, len(text), size)]

    assert named(json.loads(b"".join(corrections.correct_json(pieces))), "user_annotation") == NAMES


def test_a_text_without_anything_to_put_right_is_as_it_was() -> None:
    with torch.profiler.profile() as prof:
        torch.ones(3)
    corrections = TraceCorrections.from_events(prof.profiler.kineto_results.events())

    assert list(corrections.correct_json([b"one", b"two"])) == [b"one", b"two"]


def test_a_run_has_the_names_of_files_functions_and_classes(record: "Runner") -> None:
    record.write("def quadrat(x):\n    return x.square()\n", "größe.py")
    record.write(TRAINING, "学習.py")

    outcome = record.outcome(record.start("script", "学習.py"))

    frames = {name.partition("(")[0]: name for name in named(outcome.trace, "python_function")}
    functions = {name.partition(": ")[2] for name in named(outcome.trace, "python_function")}
    assert {"größe.py", "学習.py"} <= set(frames)
    assert {"学習する", "quadrat", "Schätzer_0"} <= functions
    assert named(outcome.trace, "user_annotation").count("größe 🚀") == 5
    assert "unknown" not in {event.get("name") for event in outcome.trace["traceEvents"]}
    assert {("größe.py", 2), ("学習.py", 16)} <= {
        (file, line) for file, line, _, _ in outcome.lines.values()
    }


@pytest.mark.skipif(sys.platform != "linux", reason="needs names of files that are any bytes")
def test_a_file_whose_name_is_no_text_runs_and_is_recorded_without_frames(
    record: "Runner", tmp_path: Path
) -> None:
    record.write("def quadrat(x):\n    return x.square()\n", "größe.py")
    record.write(TRAINING, f"{NOT_UTF8}.py")

    outcome = record.outcome(record.start("script", f"{NOT_UTF8}.py"))

    assert (outcome.status, outcome.stderr) == (0, "")
    assert outcome.result["steps_recorded"] == 5
    assert outcome.facts["flags"]["with_stack"] is False
    assert outcome.facts["argv"] == ["m\\udcff.py"]
    assert named(outcome.trace, "user_annotation").count("größe 🚀") == 5
    assert load(next(tmp_path.glob("runs/*.gz")), cache=False).view("steps").height == 5


@pytest.mark.skipif(sys.platform != "linux", reason="needs names of files that are any bytes")
def test_a_folder_whose_name_is_no_text_may_be_on_the_path_and_hold_the_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_trace: "ReadTrace"
) -> None:
    folder = tmp_path / NOT_UTF8
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    with (
        pytest.warns(UserWarning, match=r"the name of `.*m\\udcff` is not UTF-8.*rename it"),
        selftime.profile(with_stack=True) as prof,
    ):
        torch.ones(3)
    prof.write_trace(folder / "trace.json")

    trace = read_trace(folder / "trace.json")
    assert named(trace, "python_function") == []
    assert "aten::ones" in named(trace, "cpu_op")
    assert trace["traceName"].endswith("m\\udcff/trace.json")
