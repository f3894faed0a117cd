"""Which folders TensorBoard was started with, as it reads its own flags."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tensorboard.plugins.base_plugin import TBContext

from selftime.tensorboard.logdirs import Logdir, logdirs

if TYPE_CHECKING:
    from tests.tensorboard.conftest import Context


def test_nothing_is_told(context: "Context") -> None:
    assert logdirs(context()) == []


def test_a_context_may_lack_everything() -> None:
    assert logdirs(TBContext()) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("/a/b", [Logdir("/a/b")]),
        ("/a:b/c", [Logdir("/a:b/c")]),
        ("old:/a,new:/b", [Logdir("/a", "old"), Logdir("/b", "new")]),
        ("gs://bucket/logs,x:/y:z", [Logdir("gs://bucket/logs"), Logdir("/y:z", "x")]),
        ("x:s3://bucket/logs", [Logdir("s3://bucket/logs", "x")]),
        ("/a,,", [Logdir("/a")]),
    ],
)
def test_a_spec_names_groups(spec: str, expected: list[Logdir], context: "Context") -> None:
    assert logdirs(context(logdir_spec=spec)) == expected


def test_one_logdir_is_taken_as_it_is(context: "Context", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home")
    assert logdirs(context(logdir="~/a,b:c")) == [Logdir("/home/a,b:c")]
    assert logdirs(context(logdir="runs")) == [Logdir(str(Path.cwd() / "runs"))]
    assert logdirs(context(logdir="gs://b/c")) == [Logdir("gs://b/c")]


@pytest.mark.parametrize(
    ("below", "run"),
    [
        (".", "logs"),
        ("a", "a"),
        ("a/b", "a/b"),
        ("a/plugins/profile/2021_05_01", "a/2021_05_01"),
        ("plugins/profile/2021_05_01", "2021_05_01"),
        ("plugins/profile", "logs"),
        ("a/plugins", "a/plugins"),
    ],
)
def test_a_run_is_a_folder_without_the_old_layout(below: str, run: str) -> None:
    folder = os.path.normpath(f"/x/logs/{below}")
    assert Logdir("/x/logs").run_name(folder) == run


def test_a_group_goes_before_its_runs() -> None:
    assert Logdir("/x/logs", "big").run_name("/x/logs/a") == "big/a"
    assert Logdir("/x/logs", "big").run_name("/x/logs") == "big"
    assert Logdir("gs://bucket/logs").run_name("a/plugins/profile/b") == "a/b"
    assert Logdir("gs://bucket/logs").run_name("") == "logs"
