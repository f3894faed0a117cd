"""What is asked of each rank is the same however it is asked."""

import gzip
import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import pytest
from polars.testing import assert_frame_equal
from tests.scale import tasks
from tests.scale.conftest import LATE, RANKS
from typer.testing import CliRunner

from selftime.cli import app
from selftime.errors import UnreadableTrace
from selftime.ingest.load import load
from selftime.reports.tables.tabular import as_csv
from selftime.scale import Local, survey, view
from selftime.scale.collect import collect_results
from selftime.trace import Job, Trace
from selftime.views import VIEWS, find_view


def loaded(folder: Path) -> Job:
    job = load(folder)
    assert isinstance(job, Job)
    return job


def command(*words: str | Path) -> Any:
    return CliRunner().invoke(app, ["view", *map(str, words)])


def test_nothing_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UnreadableTrace, match=r"the folder `.*` holds no trace: it is empty"):
        survey(tmp_path)
    with pytest.raises(UnreadableTrace, match="there is no such file or folder"):
        survey(tmp_path / "none.json")


def test_a_survey_is_what_a_job_in_hand_tells(job: Path) -> None:
    ranks = survey(job)
    told = loaded(job)
    assert dict(ranks.members) == dict(told.members)
    assert ranks.notes == told.notes == ()
    assert_frame_equal(find_view("stragglers")(ranks), told.view("stragglers"))


def test_progress_is_told_by_files(job: Path) -> None:
    told: list[tuple[int, int | None]] = []
    survey(job, progress=lambda done, of: told.append((done, of)))
    assert told == [(number, RANKS) for number in range(1, RANKS + 1)]


@pytest.mark.parametrize("name", ["stragglers", "ranks", "operators", "kernels", "health"])
@pytest.mark.sweep(1)
def test_other_processes_give_the_same_bytes(name: str, job: Path) -> None:
    here, apart = view(job, name, engine=Local(1)), view(job, name, engine=Local(2))
    assert_frame_equal(here, apart)
    assert as_csv(here) == as_csv(apart)
    assert as_csv(here) == as_csv(loaded(job).view(name))


def test_a_view_of_one_trace_has_the_rank_before(job: Path) -> None:
    table = view(job, "operators", by="shape")
    assert table.columns[:2] == ["rank", "label"]
    assert table["rank"].unique().sort().to_list() == list(range(RANKS))
    one = load(job / "rank1.json")
    assert isinstance(one, Trace)
    mine = table.filter(table["rank"] == 1).drop("rank", "label")
    assert_frame_equal(mine, one.view("operators", by="shape"))


@pytest.mark.parametrize("name", [name for name, one in VIEWS.items() if one.compares_ranks])
def test_one_trace_is_called_as_in_hand(name: str, job: Path) -> None:
    one = load(job / "rank1.json")
    assert isinstance(one, Trace)
    assert_frame_equal(view(job / "rank1.json", name), one.view(name))


def test_an_unreadable_rank_is_refused_and_the_missing_one_named(job: Path, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    shutil.copytree(job, folder)
    (folder / "rank1.json").write_bytes(b"{")
    shutil.copyfile(folder / "rank3.json", folder / "again.json")
    found = survey(folder, engine=Local(2))
    assert found.notes == ("rank 1 of 4 is missing",)
    assert sorted(Path(path).name for path in found.refused) == ["rank1.json", "rank3.json"]
    assert "holds the same trace as" in found.refused[str(folder / "rank3.json")]
    assert dict(found.refused) == dict(loaded(folder).refused)
    worst = find_view("stragglers")(found)
    assert worst.filter(worst["straggler"])["rank"].to_list() == [LATE]


def test_a_rank_that_kills_is_refused(job: Path, marks: Path) -> None:
    ask = partial(deadly, marks=str(marks))
    found = collect_results(job, ask, engine=Local(2), cache=False)
    [(path, why)] = found.refused.items()
    assert Path(path).name == "rank2.json"
    assert "was given up" in why
    assert found.notes == ("rank 2 of 4 is missing",)
    assert list(found.answers.values()) == ["rank0.json", "rank1.json", "rank3.json"]


def deadly(trace: Trace, *, marks: str) -> str:
    return Path(tasks.die(trace.source, marks=marks, times=99)).name


@pytest.mark.sweep
def test_runs_are_not_compared_as_ranks(job: Path, tmp_path: Path) -> None:
    """Case 43b: ranks of two runs in one folder."""
    shutil.copytree(job, tmp_path / "first")
    (tmp_path / "second").mkdir()
    for path in job.iterdir():
        document = json.loads(path.read_bytes()) | {"trace_id": "another"}
        (tmp_path / "second" / path.name).write_text(json.dumps(document))
    [note] = survey(tmp_path).notes
    assert note.startswith("2 runs were found: `first`, `second`; views across ranks")
    assert view(tmp_path, "operators").group_by("rank", "name").len()["len"].min() == 2
    assert_frame_equal(view(tmp_path, "stragglers"), view(job, "stragglers"))
    assert survey(tmp_path / "first").notes == ()


def test_nodes_in_folders_of_their_own_are_one_run(job: Path, tmp_path: Path) -> None:
    for rank in range(RANKS):
        (tmp_path / f"host{'ab'[rank // 2]}").mkdir(exist_ok=True)
        place = tmp_path / f"host{'ab'[rank // 2]}" / f"{rank}.json"
        place.write_bytes((job / f"rank{rank}.json").read_bytes())
    assert_frame_equal(view(tmp_path, "stragglers"), view(job, "stragglers"))
    assert survey(tmp_path).notes == ()


def test_different_versions_are_told(job: Path, tmp_path: Path) -> None:
    """Case 43c: different versions of PyTorch by rank."""
    for rank in range(RANKS):
        document = json.loads((job / f"rank{rank}.json").read_bytes())
        document["selftime"] = {"torch": "2.13.0" if rank else "2.12.1"}
        (tmp_path / f"{rank}.json").write_text(json.dumps(document))
    [note] = survey(tmp_path).notes
    assert note == "the ranks ran different versions of PyTorch: `2.12.1`, `2.13.0`"


def test_ranks_merged_in_one_file_are_told_and_no_rank_is_made_up(
    job: Path, tmp_path: Path
) -> None:
    """Case 40: events of two ranks in one list, with the same correlations."""
    first, second = (json.loads((job / f"rank{rank}.json").read_bytes()) for rank in (0, 1))
    merged = {**first, "traceEvents": first["traceEvents"] + second["traceEvents"]}
    (tmp_path / "merged.json").write_text(json.dumps(merged))
    told = view(tmp_path, "health")
    assert told["verdict"][0] == "unusable"
    late = view(tmp_path, "stragglers")
    assert not late["straggler"].any()


def test_two_whole_traces_in_one_file_are_two_ranks(job: Path, tmp_path: Path) -> None:
    """As two ranks leave it that append to one file."""
    data = [(job / f"rank{rank}.json").read_bytes() for rank in (0, 1)]
    (tmp_path / "both.json.gz").write_bytes(b"".join(map(gzip.compress, data)))
    found = survey(tmp_path)
    assert [member.rank for member in found.members.values()] == [0, 1]
    assert found.notes == ("ranks 2, 3 of 4 are missing",)


def test_a_pattern_chooses_ranks(job: Path) -> None:
    found = load(str(job / "*[01].json"))
    assert isinstance(found, Job)
    assert [member.rank for member in found.members.values()] == [0, 1]
    assert found.notes == ("ranks 2, 3 of 4 are missing",)
    deep = survey(str(job.parent / "jo*" / "**" / "rank3.json"))
    assert [member.label for member in deep.members.values()] == ["rank 3"]
    with pytest.raises(UnreadableTrace, match=r"the pattern `.*` holds no trace: it matches no"):
        load(str(job / "*.nothing"))


@pytest.mark.sweep
def test_a_folder_in_memory(job: Path) -> None:
    system = fsspec.filesystem("memory")
    for path in job.iterdir():
        system.pipe(f"/job/deep/{path.name}", path.read_bytes())
    system.pipe("/job/notes.txt", b"none")
    try:
        for place in ("memory://job", "memory://job/", "memory://job/**/*.json"):
            found = load(place)
            assert isinstance(found, Job), place
            assert [member.label for member in found.members.values()] == [
                f"rank {rank}" for rank in range(RANKS)
            ]
            assert_frame_equal(view(place, "stragglers"), view(job, "stragglers"))
        one = load("memory://job/deep/rank0.json")
        assert isinstance(one, Trace)
        with pytest.raises(UnreadableTrace, match="cannot be read"):
            load("memory://none/such")
    finally:
        system.rm("/job", recursive=True)


@pytest.mark.sweep
def test_the_command_gives_what_python_gives(job: Path) -> None:
    for engine in ([], ["--engine", "local", "--workers", "2"]):
        done = command("stragglers", job, "--format", "csv", *engine)
        assert done.exit_code == 0, done.output
        assert done.stdout == as_csv(view(job, "stragglers"))
    done = command("operators", job, "--engine", "local", "--format", "csv")
    assert done.stdout == as_csv(view(job, "operators"))


def test_the_command_tells_what_is_odd(job: Path, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    shutil.copytree(job, folder)
    (folder / "rank1.json").write_bytes(b"{")
    for words in (["stragglers"], ["operators", "--engine", "local"]):
        done = command(words[0], folder, *words[1:])
        assert done.exit_code == 0
        assert "Left out: `" in done.stderr
        assert "Note: rank 1 of 4 is missing." in done.stderr


def test_the_command_chooses_traces_and_columns(job: Path) -> None:
    words = ["--trace", "rank3", "--columns", "rank,name", "--format", "csv"]
    done = command("kernels", job, "--engine", "local", *words)
    assert done.exit_code == 0, done.output
    first, *rows = done.stdout.splitlines()
    assert first == "rank,name"
    assert rows
    assert all(row.startswith("3,") for row in rows)
    assert "missing" not in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["operators", "--workers", "2"], "add `--engine local`"),
        (["operators", "--engine", "local", "--address", "auto"], "add `--engine ray`"),
        (["stragglers", "--trace", "none"], "has `none` in its name"),
        (["flame", "--engine", "local", "--format", "folded"], "can hold one trace only"),
    ],
)
def test_words_that_do_not_fit_are_one_sentence(words: list[str], told: str, job: Path) -> None:
    done = command(words[0], job, *words[1:])
    assert done.exit_code == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
