"""The faults of the demo's program are in its recording, at their lines; its twin has none."""

from functools import cache
from pathlib import Path

import polars as pl
import pytest
from tests.installed import needs
from tests.preloaded import Preloaded

import selftime
from selftime.trace import Trace

pytest.importorskip("torch")
needs("sklearn")
pytestmark = pytest.mark.torch

FOLDER = Path(__file__).parents[2] / "examples" / "digits"
STEPS = 5


@pytest.fixture(scope="module")
def recorded(preloaded: Preloaded, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    """Both programs, recorded as `make demo` records one, however long that takes."""
    return {
        name: record(preloaded, FOLDER / f"{name}.py", tmp_path_factory.mktemp(name))
        for name in ("train", "train_fixed")
    }


def record(preloaded: Preloaded, program: Path, folder: Path) -> Trace:
    steps = ["--warmup", "3", "--steps", str(STEPS), "--hold", "60"]  # the machine may be busy
    command = ["-m", "selftime", "run", "--quiet", *steps, "-o", str(folder)]
    done = preloaded.run([*command, str(program), "--epochs", "1", "--steps", "15"], cwd=folder)
    assert done.returncode == 0, done.stderr
    [path] = folder.glob("*.json.gz")
    trace = selftime.load(path)
    assert isinstance(trace, Trace)
    return trace


def named(trace: Trace, pattern: str) -> pl.DataFrame:
    return trace.slices.filter(pl.col("name").cast(pl.String).str.contains(pattern))


@cache
def source(file: str) -> list[str]:
    return Path(file).read_text(encoding="utf-8").splitlines()


def code_at(trace: Trace, slices: pl.DataFrame) -> set[str]:
    """The text of the lines on which slices ran, as the recording saved them."""
    lines = slices.join(trace.lines, on="id").select("file", "line").unique()
    return {source(str(file))[line - 1].strip() for file, line in lines.iter_rows()}


def dtypes_of_convolutions(trace: Trace) -> set[str]:
    """Dtype of the first input of each convolution."""
    convolutions = named(trace, r"^aten::conv2d$").join(trace.op_args, on="id")
    types = convolutions["input_types"].cast(pl.String).str.json_decode(pl.List(pl.String))
    return set(types.list.first().to_list())


def operators_in_optimizer(trace: Trace) -> float:
    """Operators directly below an optimizer's step, in a step."""
    steps = named(trace, r"^Optimizer\.step#")
    below = trace.slices.filter(pl.col("parent").is_in(steps["id"].implode()))
    return below.filter(pl.col("category").cast(pl.String) == "cpu_op").height / steps.height


def test_steps_are_the_optimizers(recorded: dict[str, Trace]) -> None:
    for trace in recorded.values():
        assert trace.facts["steps"]["source"] == "optimizer steps"
        assert named(trace, r"^ProfilerStep#").height == STEPS


def test_float64(recorded: dict[str, Trace]) -> None:
    assert dtypes_of_convolutions(recorded["train"]) == {"double"}
    assert dtypes_of_convolutions(recorded["train_fixed"]) == {"float"}


def test_convolutions_run_at_the_lines_of_the_network(recorded: dict[str, Trace]) -> None:
    code = code_at(recorded["train"], named(recorded["train"], r"^aten::conv2d$"))
    assert code == {
        "features = functional.relu(self.norm(self.stem(images)))",
        "features = functional.relu(self.norm1(self.conv1(images)))",
        "features = self.norm2(self.conv2(features))",
        "return functional.relu(features + self.shortcut(images))",
    }


def test_data_loading(recorded: dict[str, Trace]) -> None:
    train, fixed = recorded["train"], recorded["train_fixed"]
    loading = named(train, r"^enumerate\(DataLoader\)#_SingleProcess")
    assert code_at(train, loading) == {"for step, (images, labels) in enumerate(loader):"}
    assert named(fixed, r"DataLoader").is_empty()


def test_optimizer(recorded: dict[str, Trace]) -> None:
    train, fixed = recorded["train"], recorded["train_fixed"]
    assert code_at(train, named(train, r"^Optimizer\.step#")) == {"optimizer.step()"}
    assert operators_in_optimizer(train) > 200
    assert operators_in_optimizer(fixed) < 200


def test_reading_a_number_back(recorded: dict[str, Trace]) -> None:
    train, fixed = recorded["train"], recorded["train_fixed"]
    code = code_at(train, named(train, r"^aten::item$"))
    assert "losses.append(loss.item())" in code
    assert "correct += (outputs.argmax(dim=1) == labels).sum().item()" in code
    repaired = code_at(fixed, named(fixed, r"^aten::item$"))
    assert [line for line in repaired if ".item()" in line] == []
