"""The files of a folder as the ranks of a job: missing, there twice, unknown, or of one process."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.ingest.rough.case import document, events
from typer.testing import CliRunner

from selftime.cli import app
from selftime.ingest.load import load
from selftime.trace import Job

T = 1_750_000_000_000_000
"""Microseconds since the epoch at which a recording began."""


def recording(number: int, *, at: int = 0, pid: int = 0, **header: Any) -> bytes:
    """A recording unlike the others, so many microseconds after the first, of a process."""
    pid = pid or 100 + number
    made = [
        {**e, "ts": e["ts"] + T + at, "pid": pid if e["cat"] != "kernel" else e["pid"]}
        for e in events(12)
    ]
    return document(made, trace_id=f"{number}", **header)


def told(rank: object, size: object = 8, **more: Any) -> dict[str, Any]:
    return {"distributedInfo": {"rank": rank, "world_size": size, **more}}


def job_of(folder: Path, files: dict[str, bytes]) -> Job:
    for name, data in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
    job = load(folder, cache=False)
    assert isinstance(job, Job)
    assert list(job.members) == list(job.traces)
    return job


def labels(job: Job, folder: Path) -> dict[str, str]:
    return {str(Path(path).relative_to(folder)): m.label for path, m in job.members.items()}


def test_a_missing_rank_is_named(tmp_path: Path) -> None:
    files = {f"{rank}.json": recording(rank, **told(rank)) for rank in range(8)}
    whole = job_of(tmp_path, files)
    assert whole.notes == ()
    (tmp_path / "3.json").unlink()
    rest = job_of(tmp_path, {})
    assert rest.notes == ("rank 3 of 8 is missing",)
    for path, trace in rest.traces.items():
        assert trace.view("health").equals(whole.traces[path].view("health"))


def test_missing_ranks_are_named_but_not_thousands(tmp_path: Path) -> None:
    files = {f"{rank}.json": recording(rank, **told(str(rank), "8")) for rank in (0, 1, 2, 4, 6)}
    assert job_of(tmp_path, files).notes == ("ranks 3, 5, 7 of 8 are missing",)
    huge = {f"{rank}.json": recording(rank, **told(rank, 1 << 30)) for rank in (0, 1)}
    (tmp_path / "huge").mkdir()
    [note] = job_of(tmp_path / "huge", huge).notes
    assert "and 1,073,741,814 more of 1,073,741,824 are missing" in note


def test_two_files_of_one_rank(tmp_path: Path) -> None:
    job = job_of(
        tmp_path,
        {
            "a.json": recording(0, **told(0, 2)),
            "b.json": recording(1, **told(0, 2)),
            "c.json": recording(2, **told(1, 2)),
        },
    )
    assert labels(job, tmp_path) == {
        "a.json": "rank 0 (1)",
        "b.json": "rank 0 (2)",
        "c.json": "rank 1",
    }
    [note] = job.notes
    assert note.startswith("2 traces claim rank 0: `")


@pytest.mark.parametrize("rank", [{}, told(0, 2)], ids=["no rank", "a rank"])
def test_two_files_of_one_process_are_windows(rank: dict[str, Any], tmp_path: Path) -> None:
    """Named against the order of their times."""
    job = job_of(
        tmp_path,
        {
            "b.json": recording(0, pid=7, **rank),
            "a.json": recording(1, pid=7, at=1_000_000, **rank),
            "c.json": recording(2, pid=9, **told(1, 2)),
        },
    )
    name = "rank 0" if rank else "trace 1"
    assert labels(job, tmp_path) == {
        "a.json": f"{name}, window 2",
        "b.json": f"{name}, window 1",
        "c.json": "rank 1",
    }
    assert not any("of rank 0" in note for note in job.notes)


def test_runs_of_several_folders_are_told_apart(tmp_path: Path) -> None:
    files = {
        f"{run}/{rank}.json": recording(2 * rank + (run == "b"), **told(rank, 2))
        for run in "ab"
        for rank in range(2)
    }
    job = job_of(tmp_path, files)
    [note] = job.notes
    assert note == "2 runs were found: `a`, `b`; views across ranks show the latest"
    assert [member.run for member in job.members.values()] == ["a", "a", "b", "b"]


def test_folders_of_nodes_are_one_run(tmp_path: Path) -> None:
    files = {
        f"{'ab'[rank // 2]}/{rank}.json": recording(rank, **told(rank, 4)) for rank in range(4)
    }
    job = job_of(tmp_path, files)
    assert job.notes == ()
    assert {member.run for member in job.members.values()} == {"a"}
    (tmp_path / "b" / "2.json").unlink()
    assert job_of(tmp_path, {}).notes == ("rank 2 of 4 is missing",)


def test_ranks_of_different_versions_are_told(tmp_path: Path) -> None:
    facts = [{"torch": version} for version in ("2.13.0", "2.12.1", "2.13.0")]
    files = {
        f"{rank}.json": recording(rank, **told(rank, 3), selftime=facts[rank]) for rank in range(3)
    }
    [note] = job_of(tmp_path, files).notes
    assert note == "the ranks ran different versions of PyTorch: `2.12.1`, `2.13.0`"


NAMED = {
    "rank3_step5.json": ("rank 3", "file name"),
    "vit-r4.json": ("rank 4", "file name"),
    "rank_1/trace.json": ("rank 1", "folder"),
    "1700-TP-2.trace.json": ("TP2", ""),
    "trace_DP0_TP1_EP0.json": ("DP0 TP1 EP0", ""),
    "host_4711.1700000000000.pt.trace.json": ("trace 1", ""),
    "worker_name_with.dots.1700.pt.trace.json": ("trace 2", ""),
}


def test_ranks_that_only_names_tell(tmp_path: Path) -> None:
    job = job_of(tmp_path, {name: recording(n) for n, name in enumerate(NAMED)})
    found = {Path(path).name: (m.label, m.known_by) for path, m in job.members.items()}
    assert found == {Path(name).name: wanted for name, wanted in NAMED.items()}
    [note] = job.notes
    assert note.startswith("no rank is known for `")
    assert note.endswith("worker_name_with.dots.1700.pt.trace.json`: they are numbered by name")


def test_the_header_is_believed_before_names_and_groups_last(tmp_path: Path) -> None:
    groups = [{"pg_name": str(n), "ranks": ranks} for n, ranks in enumerate([[2, 3], [0, 2]])]
    job = job_of(
        tmp_path,
        {
            "rank5.json": recording(0, **told(1, 4)),
            "a.json": recording(1, distributedInfo={"pg_config": groups, "world_size": 4}),
        },
    )
    found = {Path(path).name: (m.rank, m.known_by) for path, m in job.members.items()}
    assert found == {"rank5.json": (1, "header"), "a.json": (2, "process groups")}


@pytest.mark.parametrize("rank", ["²", "9" * 5000, -1, 1 << 70, True, [0], "", None, 0.5])
def test_what_is_no_rank_is_none(rank: object, tmp_path: Path) -> None:
    job = job_of(tmp_path, {"a.json": recording(0, **told(rank, rank)), "b.json": recording(1)})
    assert [member.rank for member in job.members.values()] == [None, None]
    assert all(trace.view("overview").height for trace in job)


def test_files_that_are_no_job_have_no_notes(tmp_path: Path) -> None:
    job = job_of(tmp_path, {"a.json": recording(0), "b.json": recording(1, **told(0, 1))})
    assert job.notes == ()


def test_the_command_says_what_is_odd_and_finds_a_rank(tmp_path: Path) -> None:
    job_of(tmp_path, {f"x-r{n}.json": recording(n, **told(None, 3)) for n in (0, 2)})
    done = CliRunner().invoke(app, ["view", "steps", str(tmp_path), "--format", "json"])
    assert done.exit_code == 0
    assert done.stderr == "Note: rank 1 of 3 is missing.\n"
    out = tmp_path / "part.json"
    cut = CliRunner().invoke(app, ["cut", str(tmp_path), "--rank", "2", "-o", str(out)])
    assert cut.exit_code == 0, cut.stderr
    assert json.loads(out.read_text())["trace_id"] == "2"
