"""A cluster on this machine gives the same bytes as this process, whatever dies.

That a node dies is tested in `test_ray_node.py`.
"""

import logging
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal
from tests.installed import needs
from tests.scale import tasks
from typer.testing import CliRunner

from selftime.cli import app
from selftime.errors import UsageError
from selftime.reports.tables.tabular import as_csv
from selftime.scale import Local, Ray, survey, view
from selftime.scale.engine import MAX_READ_ATTEMPTS_PER_FILE, FileLostByReader

needs("ray")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """One node of two cores, for all tests here."""
    from tests.scale.clusters import SETTINGS, started  # noqa: PLC0415 - takes a second

    with pytest.MonkeyPatch.context() as patch:
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        running, _ = started(2)
        yield running
        running.shutdown()  # type: ignore[no-untyped-call]  # Ray's own


@pytest.fixture(scope="module")
def engine(cluster: Any) -> Iterator[Ray]:
    """An engine of a program that is connected already: to connect takes seconds."""
    import ray  # noqa: PLC0415 - likewise

    ray.init(cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    yield Ray()
    ray.shutdown()


@pytest.mark.parametrize(("name", "files"), [("stragglers", "*"), ("operators", "rank[12]*")])
@pytest.mark.sweep(1)
def test_a_cluster_gives_the_same_bytes(name: str, files: str, engine: Ray, job: Path) -> None:
    place = job / files
    there, here = view(place, name, engine=engine), view(place, name, engine=Local(1))
    assert_frame_equal(there, here)
    assert as_csv(there) == as_csv(here)


@pytest.mark.sweep
def test_paths_begin_at_the_folder_of_who_asks(
    engine: Ray, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(job.parent)
    found = survey(f"{job.name}/rank[1].json", engine=engine)
    assert list(found.summaries) == [f"{job.name}/rank1.json"]
    assert found.refused == {}


@pytest.mark.sweep
def test_a_killed_worker_is_replaced_and_its_file_tried_again(engine: Ray, marks: Path) -> None:
    places = [f"rank{number}.json" for number in (1, 2, 3)]
    answers = list(engine.map(partial(tasks.die, marks=str(marks), times=1), places))
    assert sorted(answers) == [(place, place) for place in places]
    tried = sorted(mark.name for mark in marks.iterdir())
    assert tried == sorted([*(f"{place}.0" for place in places), "rank2.json.1"])


@pytest.mark.sweep
def test_a_file_that_always_kills_is_given_up_and_the_rest_is_there(
    engine: Ray, marks: Path
) -> None:
    places = ["rank2.json", "rank3.json"]
    answers = dict(engine.map(partial(tasks.die, marks=str(marks), times=99), places))
    assert answers.pop("rank2.json") == FileLostByReader("rank2.json")
    assert answers == {place: place for place in places if place != "rank2.json"}
    assert len(list(marks.glob("rank2.json.*"))) == MAX_READ_ATTEMPTS_PER_FILE


def test_an_error_is_raised_where_the_task_was_given(engine: Ray) -> None:
    with pytest.raises(KeyError) as caught:
        list(engine.map(tasks.fail, ["a", "b"]))
    assert "in fail" in str(caught.value.__cause__)


@pytest.mark.sweep
def test_a_machine_that_lacks_what_is_to_be_run_is_told(
    engine: Ray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text("def task(place): return place", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    task = import_module("only_here").task
    with pytest.raises(UsageError, match=r"install the same version .*No module named 'only_here'"):
        list(engine.map(task, ["a"]))


@pytest.mark.usefixtures("engine")
@pytest.mark.sweep
def test_few_are_asked_at_once_if_so_wished() -> None:
    places = [str(number) for number in range(3)]
    answers = list(Ray(workers=1).map(tasks.same, places))
    assert answers == [(place, place) for place in places]


def test_what_is_in_this_process_cannot_be_read_elsewhere() -> None:
    with pytest.raises(UsageError, match="exists only in this process"):
        list(Ray().map(tasks.same, ["memory://a"]))


@pytest.mark.sweep
@pytest.mark.usefixtures("engine")
def test_the_command_gives_what_python_gives(cluster: Any, job: Path) -> None:
    words = ["--engine", "ray", "--address", cluster.address, "--format", "csv"]
    place = str(job / "rank[12]*")
    done = CliRunner().invoke(app, ["view", "stragglers", place, *words])
    assert done.exit_code == 0, done.output
    assert done.stdout == as_csv(view(place, "stragglers"))
