"""`selftime redact` of memory snapshots: nothing private is left, sizes and times stay."""

import pickle
from pathlib import Path
from typing import Any, Final

import pytest
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

from selftime.cli import app
from selftime.ingest.load import load
from selftime.trace import Trace

RUN: Final = CliRunner()
HOME: Final = "/" + "home/janedoe"
T: Final = 1_700_000_000_000_000
STACK: Final = [
    {"filename": f"{HOME}/falcon/net.py", "line": 5, "name": "forward"},
    {"filename": "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py", "line": 9,
     "name": "_call_impl"},
]  # fmt: skip


def entry(number: int, action: str, **more: Any) -> dict[str, Any]:
    return {"action": action, "addr": 4096 + 512 * number, "size": 512, "stream": 0,
            "time_us": T + 10 * number, "frames": STACK, **more}  # fmt: skip


def snapshot(**more: Any) -> dict[str, Any]:
    entries = [entry(n, "alloc", user_metadata=f"of janedoe, {HOME}/x") for n in range(20)]
    return {"device_traces": [entries], "segments": [], "external_annotations": [], **more}


def redact(folder: Path, data: bytes, *words: str, name: str = "new.pickle") -> tuple[Any, Path]:
    path, new = folder / "old.pickle", folder / name
    path.write_bytes(data)
    return RUN.invoke(app, ["redact", str(path), "-o", str(new), *words]), new


def values_of(path: Path) -> Any:
    return pickle.loads(path.read_bytes())  # noqa: S301 - our own


@pytest.mark.parametrize("protocol", [2, 5])
def test_nothing_private_is_left_and_the_rest_is_as_it_was(protocol: int, tmp_path: Path) -> None:
    before = snapshot(allocator_settings={"host_name": "gpu-box-17", "roundup": 8})
    done, new = redact(tmp_path, pickle.dumps(before, protocol=protocol))
    assert done.exit_code == 0, done.output
    assert "20 events" in done.stdout
    for secret in (b"janedoe", b"falcon", b"gpu-box-17"):
        assert secret not in new.read_bytes()
    frames = values_of(new)["device_traces"][0][0]["frames"]
    assert [frame["name"] for frame in frames] == ["forward", "_call_impl"]
    assert frames[0]["filename"].endswith("/net.py")
    assert frames[1]["filename"].endswith("site-packages/torch/nn/modules/module.py")
    old, read = load(tmp_path / "old.pickle", cache=False), load(new, cache=False)
    assert isinstance(old, Trace)
    assert isinstance(read, Trace)
    numbers = [name for name, dtype in old.memory.schema.items() if dtype.is_numeric()]
    assert_frame_equal(read.memory.select(numbers), old.memory.select(numbers))


def test_names_of_the_users_own_code(tmp_path: Path) -> None:
    done, new = redact(tmp_path, pickle.dumps(snapshot()), "--names", name="new.pickle.gz")
    assert done.exit_code == 0, done.output
    read = load(new, cache=False)
    assert isinstance(read, Trace)
    told = str(read.memory.to_dicts())
    assert "forward" not in told
    assert "net.py" not in told
    assert "janedoe" not in told


def test_one_value_in_many_places_is_one_in_the_new_pickle(tmp_path: Path) -> None:
    """Else a pickle of a few bytes would become one of terabytes."""
    many: Any = "x"
    for _ in range(60):
        many = [many, many]
    before = snapshot(settings=many)
    done, new = redact(tmp_path, pickle.dumps(before))
    assert done.exit_code == 0, done.output
    assert new.stat().st_size < 5_000
    entries = values_of(new)["device_traces"][0]
    assert entries[0]["frames"] is entries[1]["frames"]


class Runs:
    def __reduce__(self) -> Any:
        return print, ("run",)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pickle.dumps(snapshot(more=Runs())), "would load `builtins.print`"),
        (pickle.dumps([1]), "something else than a snapshot"),
        (b"\x80\x04}(X\x01\x00\x00\x00a" + b"]" * 100_000 + b"a" * 99_999 + b"u.", "thousands"),
        (pickle.dumps(snapshot())[:-9], "ends too early"),
    ],
)
def test_refusals_are_one_sentence_and_leave_nothing(
    data: bytes, words: str, tmp_path: Path
) -> None:
    done, new = redact(tmp_path, data)
    assert done.exit_code == 2, done.output
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not new.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["old.pickle"]
