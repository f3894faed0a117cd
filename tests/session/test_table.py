"""The printed table against torch's own, cell by cell."""

import inspect
import re
from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch")

from torch.autograd.profiler_util import EventList  # noqa: E402 - after torch

from selftime.errors import UsageError  # noqa: E402 - likewise

if TYPE_CHECKING:
    from tests.session.conftest import Recording

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(
        "time_unit" not in inspect.signature(EventList.table).parameters,
        reason="tables of this PyTorch have other units and columns",
    ),
    # programs are asked for every table, also for what they did not record
    pytest.mark.filterwarnings("ignore:group_by_.* has no .* to group by:UserWarning"),
]

RIGHT = ["forward", "training", "loading", "recurrent", "inference", "overloads"]
"""Programs of which torch's numbers are right, so that its text is, too."""

GROUPINGS: list[dict[str, Any]] = [
    {},
    {"group_by_input_shape": True},
    {"group_by_overload_name": True},
    {"group_by_input_shape": True, "group_by_overload_name": True},
]


@pytest.fixture(params=RIGHT)
def right(request: pytest.FixtureRequest, recordings: Any) -> "Recording":
    found: Recording = recordings(request.param)
    return found


def tables(prof: Any, grouping: dict[str, Any], options: dict[str, Any]) -> tuple[str, str]:
    torchs = torch.profiler.profile.key_averages(prof, **grouping)
    return prof.key_averages(**grouping).table(**options), torchs.table(**options)


def lines(table: str) -> list[str]:
    """Lines in order, without the blanks between cells and the rules."""
    found = (re.sub(r"\s+", " ", line).strip() for line in table.splitlines())
    return [line for line in found if line.strip("-= ")]


def body(table: str) -> list[str]:
    """The rows, without the heads and totals."""
    above = ("Name ", "This report", "Self CPU time", "Self CUDA time")
    return [line for line in lines(table) if not line.startswith(above)]


_NUMBER = re.compile(r"(\d+\.\d+)(us|ms|s|%)(?= |$)")


def mask(line: str) -> tuple[str, str]:
    return _NUMBER.sub("#", line), line


def assert_same(ours: list[str], torchs: list[str]) -> None:
    """The same lines in any order; torch's sums of fractions may end in another last digit."""
    ours, torchs = sorted(ours, key=mask), sorted(torchs, key=mask)
    assert [mask(line)[0] for line in ours] == [mask(line)[0] for line in torchs]
    for mine, theirs in zip(ours, torchs, strict=True):
        for (number, unit), (other, its_unit) in zip(
            _NUMBER.findall(mine), _NUMBER.findall(theirs), strict=True
        ):
            assert unit == its_unit
            assert abs(float(number) - float(other)) < (0.011 if unit == "%" else 0.0011), mine


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.sweep(8)
def test_holds_the_same_lines(right: "Recording", grouping: dict[str, Any]) -> None:
    ours, torchs = tables(right.profiler, grouping, {"row_limit": -1})

    assert_same(lines(ours), lines(torchs))


@pytest.mark.parametrize(
    "options",
    [
        {"time_unit": "us"},
        {"time_unit": "s"},
        {"max_name_column_width": 12},
        {"max_name_column_width": None, "max_shapes_column_width": None},
        {"max_shapes_column_width": 20},
        {"header": "What it did"},
    ],
    ids=str,
)
@pytest.mark.sweep(12)
def test_takes_torchs_options(right: "Recording", options: dict[str, Any]) -> None:
    ours, torchs = tables(
        right.profiler, {"group_by_input_shape": True}, {"row_limit": -1} | options
    )

    assert_same(lines(ours), lines(torchs))
    assert [len(line.rstrip()) for line in ours.splitlines()[:3]] == [
        len(line.rstrip()) for line in torchs.splitlines()[:3]
    ]


@pytest.mark.parametrize(
    "key",
    [
        "self_cpu_time_total",
        "cpu_time_total",
        "cpu_time",
        "count",
        "flops",
        "cpu_memory_usage",
        "self_cpu_memory_usage",
        "self_cuda_time_total",
        "cuda_time_total",
        "self_xpu_memory_usage",
        "device_time",
    ],
)
@pytest.mark.sweep(6)
def test_sorts_by_torchs_keys(right: "Recording", key: str) -> None:
    ours, torchs = tables(right.profiler, {}, {"sort_by": key, "row_limit": -1})
    rows = right.profiler.key_averages()
    name = key.replace("cuda", "device").replace("xpu", "device")
    values = {line: getattr(row, name) for line, row in zip(body(rows.table()), rows, strict=True)}

    shown = [values[line] for line in body(ours)]
    assert_same(body(ours), body(torchs))
    assert shown == sorted(shown, reverse=True)


def test_a_limit_keeps_the_first_rows_and_the_totals(right: "Recording") -> None:
    few, all_rows = (
        right.profiler.key_averages().table(sort_by="count", row_limit=limit) for limit in (2, -1)
    )

    assert len(body(few)) == 2
    assert lines(few)[0] == lines(all_rows)[0]
    assert lines(few)[-1] == lines(all_rows)[-1]
    assert body(few) == body(all_rows)[:2]


def test_the_total_of_all_rows_is_torchs(right: "Recording") -> None:
    ours = right.profiler.key_averages().total_average()
    torchs = torch.profiler.profile.key_averages(right.profiler).total_average()

    for name in ("key", "count", "flops", "cpu_memory_usage", "self_cpu_memory_usage"):
        assert getattr(ours, name) == getattr(torchs, name), name
    for name in ("cpu_time_total", "self_cpu_time_total", "cpu_time"):
        assert getattr(ours, name) == pytest.approx(getattr(torchs, name)), name


def test_prints_stacks_as_torch_does(recordings: Any) -> None:
    prof = recordings("recurrent, stacks").profiler
    ours, torchs = tables(prof, {"group_by_stack_n": 3}, {"row_limit": -1})

    assert lines(ours)[0] == lines(torchs)[0]
    places = {" ".join(line.split()[-2:]) for line in lines(ours) if line.endswith(": forward")}
    assert "torch/nn/modules/rnn.py" in str(places)
    assert places == {
        " ".join(line.split()[-2:]) for line in lines(torchs) if line.endswith(": forward")
    }


def test_flops_stand_under_their_name_beside_stacks(recordings: Any) -> None:
    prof = recordings("forward, everything").profiler
    ours, torchs = tables(prof, {"group_by_stack_n": 3}, {"row_limit": -1})
    (linear,) = (line for line in lines(ours) if line.startswith("aten::addmm"))

    assert lines(ours)[0].endswith("Total KFLOPs Source Location")
    assert linear.endswith("<built-in function linear>")
    # Torch puts the two heads the other way round than the cells below them.
    assert lines(torchs)[0].endswith("Source Location Total KFLOPs")
    assert linear in lines(torchs)


def test_top_level_counts_what_ran_inside_no_other(recordings: Any) -> None:
    prof = recordings("nested").profiler
    (row,) = body(prof.key_averages().table(top_level_events_only=True))
    (outer,) = (line for line in body(prof.key_averages().table()) if line.startswith("outer"))

    assert row == outer
    assert "100.00%" in row, "its share is of the whole"


@pytest.mark.parametrize(
    "options", [{"sort_by": "nonesuch"}, {"sort_by": "key"}, {"time_unit": "h"}]
)
def test_refuses_unknown_words_in_a_sentence(recordings: Any, options: dict[str, str]) -> None:
    (word,) = options.values()
    with pytest.raises(UsageError, match=f"is `{word}`; choose one of"):
        recordings("forward").profiler.key_averages().table(**options)
