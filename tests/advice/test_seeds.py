"""What the advice says of the programs that tutorials on profiling are about.

On a CPU the programs themselves are recorded; what only a GPU shows is drawn.
"""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

import pytest
from tests.preloaded import Preloaded
from typer.testing import CliRunner

from selftime import Trace, load
from selftime.advice import Advice, Finding, advise
from selftime.advice.verify import verify
from selftime.cli import app
from selftime.testing import sketch

Spans: TypeAlias = list[tuple[str, int, int]]
"""Letters, and from which column to which they stand in each step."""

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
STEPS: Final = 4


def drawn(column: str, width: int, legend: str, lanes: list[tuple[str, Spans]]) -> Trace:
    """A program whose steps, of so many columns, are all the same; work may run into the next."""
    marks = "".join(letter * width for letter in "ABCDEFGH"[:STEPS])
    lines = [f"column = {column}", legend.strip(), f"mark 1 | {marks}"]
    lines += [f"{letter} = ProfilerStep#{n}" for n, letter in enumerate("ABCDEFGH"[:STEPS], 1)]
    for lane, spans in lanes:
        text = [" "] * (2 * STEPS * width)
        for step in range(STEPS):
            for letter, begin, end in spans:
                at = step * width
                text[at + begin : at + end] = letter * (end - begin)
        lines.append(f"{lane} | {''.join(text)}")
    return sketch("\n".join(lines))


def at_line(advice: Advice) -> dict[int, Finding]:
    return {f.where.line: f for f in advice.findings if f.where.line is not None}


LOOP: Final = """
d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:40 epoch
t = aten::to; line = train.py:42 epoch
p = Memcpy HtoD (Pageable -> Device); bytes = 24000000
c = aten::conv2d; line = net.py:9 forward
b = aten::convolution_backward
i = aten::item; line = train.py:50 epoch
l = aten::_local_scalar_dense
j = aten::item; line = train.py:51 epoch
r = aten::_local_scalar_dense
m = Memcpy DtoH (Device -> Pageable)
n = Memcpy DtoH (Device -> Pageable)
a = aten::argmax
e = cudaLaunchKernel
k = cudaLaunchKernel
q = cudaLaunchKernel
"""
"""A first training loop: it loads, copies, learns, and reads loss and hits in every step."""


def first_loop() -> Advice:
    operators = [("t", 16, 22), ("c", 22, 25), ("b", 25, 28), ("i", 28, 44), ("a", 44, 48)]
    calls = [("p", 16, 22), ("k", 23, 24), ("e", 26, 27), ("m", 28, 44), ("q", 45, 46)]
    trace = drawn(
        "500 us",
        60,
        LOOP,
        [
            ("mark 1", [("d", 0, 16)]),
            ("cpu 1", [*operators, ("j", 48, 54)]),
            ("cpu 1", [("l", 28, 44), ("r", 48, 54)]),
            ("call 1", [*calls, ("n", 48, 54)]),
            ("copy 7", [("p", 16, 21), ("m", 43, 44), ("n", 53, 54)]),
            ("gpu 7", [("k", 24, 34), ("e", 34, 43), ("q", 46, 53)]),
        ],
    )
    return advise(trace)


def test_the_loop_of_a_first_program_on_a_gpu() -> None:
    """Loading, both reads and the copy are found at their lines, and nothing else is."""
    advice = first_loop()
    found = {line: (f.rule, f.covers) for line, f in at_line(advice).items()}
    assert found == {
        40: ("slow_input", ("A1",)),
        42: ("pageable_copy", ("C1",)),
        50: ("scalar_read", ("B1",)),
        51: ("scalar_read", ("B1",)),
    }
    assert len(advice.findings) == len(found)
    alone = [f.saving.estimate_ms or 0.0 for f in advice.findings]
    assert advice.joint.estimate_ms is not None
    assert max(alone) < advice.joint.estimate_ms < sum(alone)


ON_A_CPU: Final = """
d = enumerate(DataLoader)#_{loader}DataLoaderIter.__next__; line = train.py:40 epoch
f = torch/utils/data/_utils/fetch.py(54): fetch
g = train.py(31): __getitem__
c = aten::conv2d; line = net.py:9 forward
b = aten::convolution_backward
facts = {facts}
"""
CORES: Final = '{{"threads": {threads}, "cores": {{"effective": {cores}}}}}'
BUSY: Final = (
    '{"threads": 1, "cores": {"effective": 2}, '
    '"usage": {"wall_s": 1.0, "workers": {"count": 2, "cpu_s": 1.6}, "busy": 0.97}}'
)
"""Two workers that compute, on two cores that are never idle."""
LOADING_MS, COMPUTING_MS = 8.0, 22.0
HAND_OVER_MS: Final = 1.0
"""What a batch takes from a worker to the loop."""


def loop_on_a_cpu(facts: str, *, has_workers: bool = False) -> Advice:
    """The same loop without a device: it loads for 8 ms of 30, computing all the time."""
    loader = "MultiProcessing" if has_workers else "SingleProcess"
    frames: list[tuple[str, Spans]] = [("python 1", [("f", 0, 16)]), ("python 1", [("g", 0, 16)])]
    lanes: list[tuple[str, Spans]] = [
        ("mark 1", [("d", 0, 16)]),
        *([] if has_workers else frames),
        ("cpu 1", [("c", 16, 36), ("b", 36, 60)]),
    ]
    return advise(drawn("500 us", 60, ON_A_CPU.format(loader=loader, facts=facts), lanes))


def loads(advice: Advice) -> dict[str, Finding]:
    """Findings on the input, by entry."""
    return {e: f for f in advice.findings for e in f.covers if e.startswith("A")}


@pytest.mark.parametrize(("threads", "cores"), [(1, 2), (1, 16), (2, 3), (8, 16)])
def test_on_a_cpu_with_free_cores_workers_hide_the_loading(threads: int, cores: int) -> None:
    advice = loop_on_a_cpu(CORES.format(threads=threads, cores=cores))
    [(entry, finding)] = loads(advice).items()
    assert (entry, finding.where.line) == ("A1", 40)
    assert finding.saving.estimate_ms == pytest.approx(LOADING_MS - HAND_OVER_MS)
    assert finding.saving.low_ms
    assert "num_workers=1," in (finding.fix.code or "")
    [told] = (c.reason for c in advice.checked if c.rule == "heavy_transform")
    assert told.startswith("`__getitem__` computes for 100")
    assert told.endswith("of the data loading time; workers would hide it, see `slow_input`")


def test_on_a_cpu_whose_cores_all_compute_workers_take_from_the_rest() -> None:
    """Two threads have two cores: half of the loading is hidden, at the cost of the other half."""
    advice = loop_on_a_cpu(CORES.format(threads=2, cores=2))
    [(entry, finding)] = loads(advice).items()
    assert entry == "A1"
    assert finding.saving.estimate_ms == pytest.approx(LOADING_MS / 2 - HAND_OVER_MS)


def test_on_a_cpu_without_a_free_core_the_sample_is_to_get_cheaper() -> None:
    advice = loop_on_a_cpu(CORES.format(threads=1, cores=1))
    [(entry, finding)] = loads(advice).items()
    assert (entry, finding.where.function) == ("A4", "__getitem__")
    assert finding.title.startswith("`__getitem__` takes 100")
    assert finding.title.endswith("of the data loading, and no core is free")
    assert "num_workers" not in (finding.fix.code or "")
    [told] = (c for c in advice.checked if c.rule == "slow_input")
    assert told.reason == "data loading takes 27 % of each step; no core is free for workers"
    assert told.upper_ms == pytest.approx(LOADING_MS)


def test_on_a_cpu_whose_workers_have_every_core_more_of_them_are_no_help() -> None:
    advice = loop_on_a_cpu(BUSY, has_workers=True)
    [(entry, finding)] = loads(advice).items()
    assert (entry, finding.where.line) == ("A3", 40)
    assert finding.saving.estimate_ms is None
    [told] = (c.reason for c in advice.checked if c.rule == "slow_input")
    assert "no core is free for more of them: see `saturated_cores`" in told


HIDDEN: Final = """
d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:40 epoch
c = aten::conv2d
k = cudaLaunchKernel
w = cudaDeviceSynchronize
"""


@pytest.mark.parametrize(("waits", "is_hidden"), [(False, True), (True, False)])
def test_loading_is_hidden_by_structure_and_not_by_its_length(
    *, waits: bool, is_hidden: bool
) -> None:
    """Two seconds of loading, three of computing: hidden where the host runs ahead, else not."""
    calls = [("k", 20, 21), ("w", 21, 51)] if waits else [("k", 20, 21)]
    lanes: list[tuple[str, Spans]] = [
        ("mark 1", [("d", 0, 20)]),
        ("cpu 1", [("c", 20, 21)]),
        ("call 1", calls),
        ("gpu 7", [("k", 21, 50) if waits else ("k", 22, 51)]),
    ]
    trace = drawn("100 ms", 51 if waits else 30, HIDDEN, lanes)
    advice = advise(trace)
    assert ("slow_input" in {f.rule for f in advice.findings}) == (not is_hidden)
    if is_hidden:
        [reason] = (c.reason for c in advice.checked if c.rule == "slow_input")
        assert "hidden, no need to optimise" in reason
        assert "times as long before it costs anything" in reason
        assert "synchron" not in reason


MASKED: Final = """
device = {"name": "NVIDIA A10G", "memory": 24000000000}
c = aten::conv2d; line = net.py:13 forward
z = aten::nonzero; line = loss.py:31 ignore_background
u = aten::_unique2; line = loss.py:36 forward
x = aten::index; line = loss.py:26 cross_entropy
y = aten::index; line = loss.py:27 cross_entropy
n = aten::nonzero
w = autograd::engine::evaluate_function: IndexBackward0; line = loss.py:27 cross_entropy
v = aten::_index_put_impl_
b = aten::convolution_backward
p = Memcpy DtoH (Device -> Pageable)
q = Memcpy DtoH (Device -> Pageable)
r = Memcpy DtoH (Device -> Pageable)
s = Memcpy DtoH (Device -> Pageable)
t = Memcpy DtoH (Device -> Pageable)
k = cudaLaunchKernel
l = cudaLaunchKernel
m = cudaLaunchKernel
o = cudaLaunchKernel
e = cudaLaunchKernel
f = cudaLaunchKernel
"""
SITES: Final = {26, 27, 31, 36}
"""Its waits; that of the backward pass stands at the line of its forward operator, 27."""
CEILING: Final = 1300 / 141
"""A step took 1.3 s, and must move 85 GB at the 600 GB/s of the device, which is 141 ms."""


def masked_loss(gap: int) -> Trace:
    """Five waits a step, after each of which the host takes so long to launch again."""
    kernels, waits = "klmoef", "pqrst"
    lasts = (20, 20, 9, 9, 20, 32)
    launches: Spans = []
    held: Spans = []
    work: Spans = []
    copies: Spans = []
    at = 0
    for n, last in enumerate(lasts):
        launches.append((kernels[n], at + gap, at + gap + 1))
        work.append((kernels[n], at + gap + 1, at + gap + 1 + last))
        begin, at = at + gap + 2, at + gap + 1 + last
        if n < len(waits):
            held.append((waits[n], begin, at + 1))
            copies.append((waits[n], at, at + 1))
            at += 1
    operators = [(letter, b, e) for letter, (_, b, e) in zip("zuxyw", held, strict=True)]
    inner = [(letter, b, e) for letter, (_, b, e) in zip("nnv", held[2:], strict=True)]
    innermost = ("n", held[4][1], held[4][2])
    return drawn(
        "10 ms",
        at,
        MASKED,
        [
            ("cpu 1", [("c", gap, gap + 1), *operators, ("b", launches[5][1], launches[5][2])]),
            ("cpu 1", inner),
            ("cpu 1", [innermost]),
            ("call 1", [*launches, *held]),
            ("gpu 7", work),
            ("copy 7", copies),
        ],
    )


@pytest.mark.parametrize("gap", [1, 2, 5, 10])
def test_the_masked_loss_saves_idle_time_and_no_more(gap: int) -> None:
    """The time to issue a step without waits is short; it is not the time of the step."""
    trace = masked_loss(gap)
    advice = advise(trace)
    assert advice.step.device_ms is not None
    told = [f.saving.speedup or 1.0 for f in advice.findings] + [advice.joint.speedup or 1.0]
    steps = trace.view("steps").filter("counted")
    busy = steps["busy"].mean()
    assert isinstance(busy, float)
    assert max(told) <= min(CEILING, advice.step.device_ms * 1e6 / busy * 1.001)
    for f in advice.findings:
        assert (f.saving.upper_ms or 0.0) * 1e6 <= (advice.step.device_ms * 1e6 - busy) * 1.001


def test_the_waits_of_the_masked_loss_are_told_with_their_lines() -> None:
    """Where the host is slow all of them cost; and none is mended by sorting."""
    found = at_line(advise(masked_loss(10)))
    assert found.keys() == SITES
    assert {f.rule for f in found.values()} == {"data_dependent_shape"}
    assert found[36].covers == ("B7",)
    code = found[36].fix.code or ""
    assert "amin() != x.amax()" in code
    assert "sort" not in code


def test_waits_that_a_busy_device_hides_are_told_and_not_advised() -> None:
    advice = advise(masked_loss(1))
    lines = {line for line in SITES if any(f"loss.py:{line} " in c.reason for c in advice.checked)}
    assert lines | at_line(advice).keys() == SITES
    assert lines


def recorded(preloaded: Preloaded, program: Path, *arguments: str, folder: Path) -> Trace:
    folder.mkdir(exist_ok=True)
    command = ["-m", "selftime", "run", "--quiet", "--steps", "5", "-o", str(folder), str(program)]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = preloaded.run([*command, *arguments], cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    [path] = folder.glob("*.json.gz")
    trace = load(path)
    assert isinstance(trace, Trace)
    return trace


@pytest.mark.torch
@pytest.mark.timed
def test_the_loop_of_a_first_program_on_a_cpu(preloaded: Preloaded, tmp_path: Path) -> None:
    """The float64 accident is found; of waits for a device a CPU tells nothing, but where."""
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    program = EXAMPLES / "digits" / "train.py"
    trace = recorded(preloaded, program, "--epochs", "1", "--steps", "15", folder=tmp_path)
    advice = advise(trace)
    covers = {entry for f in advice.findings for entry in f.covers}
    assert "E13" in covers
    assert not covers & {"B1", "C1", "E14", "F2", "F3"}
    blamed = [f for f in advice.findings if f.rule != "double_precision"]
    assert not [f for f in blamed if "conv" in f.title]
    told = [f.saving.upper_ms for f in advice.findings if f.rule == "slow_input"]
    told += [c.upper_ms for c in advice.checked if c.rule == "slow_input"]
    [loading] = told
    assert loading is not None
    assert loading > 0
    [reads] = (u.needs for u in advice.unknown if u.rule == "scalar_read")
    source = program.read_text(encoding="utf-8").splitlines()
    lines = [n for n, line in enumerate(source, 1) if ".item()" in line][:2]
    assert all(f"train.py:{line} " in reads for line in lines)
    for cores, wrong in ((1, {"A1", "A2"}), (16, {"A3", "A4"})):
        facts = {**trace.facts, "threads": 1, "cores": {"effective": cores}}
        moved = advise(replace(trace, metadata={**trace.metadata, "selftime": facts}))
        found = loads(moved)  # what the ledger of the run tells does not depend on the facts
        assert not {entry for entry in wrong & found.keys() if found[entry].rule == "slow_input"}
    arguments = ("--epochs", "1", "--steps", "15")
    repaired = recorded(
        preloaded, program.with_name("train_fixed.py"), *arguments, folder=tmp_path / "fixed"
    )
    kept = verify(trace, repaired)
    assert "double_precision" in {promise.rule for promise in kept.gone}
    assert not {"double_precision", "slow_input"} & {promise.rule for promise in kept.left}


def entries_of(advice: Advice) -> set[str]:
    return {entry for f in advice.findings for entry in f.covers}


def waits_of_shapes(advice: Advice) -> str:
    """What is told of operators whose results' sizes depend on data: never more than where."""
    [told] = (u.needs for u in advice.unknown if u.rule == "data_dependent_shape")
    return told


@pytest.mark.torch
@pytest.mark.timed
def test_the_masked_loss_on_a_cpu_is_judged_by_measurement(
    preloaded: Preloaded, tmp_path: Path
) -> None:
    """No finding says what its repair is worth there; the steps of both programs do."""
    pytest.importorskip("torch")
    folder = EXAMPLES / "segmentation"
    before, after = tmp_path / "before", tmp_path / "after"
    sides = (("masked_loss", before), ("masked_loss_fixed", after))
    first, second = (
        advise(recorded(preloaded, folder / f"{name}.py", "--steps", "25", folder=where))
        for name, where in sides
    )
    for advice in (first, second):
        assert advice.step.device_ms is None
        assert not [entry for entry in entries_of(advice) if entry[0] in "BC"]
    source = (folder / "masked_loss.py").read_text(encoding="utf-8").splitlines()
    for code in ("torch.nonzero(", "torch.unique("):
        [line] = (n for n, text in enumerate(source, 1) if code in text)
        assert f"masked_loss.py:{line} " in waits_of_shapes(first)
    assert "would wait" not in waits_of_shapes(second)

    [old], [new] = before.glob("*.json.gz"), after.glob("*.json.gz")
    answer = CliRunner().invoke(app, ["verify", str(old), str(new), "--format", "json"])
    assert answer.exit_code == 0
    said = json.loads(answer.output)
    achieved = said["achieved"]
    assert not achieved["recorded"]
    assert achieved["saved_ms"] == pytest.approx(achieved["before_ms"] - achieved["after_ms"])
    assert achieved["low_ms"] <= achieved["saved_ms"] <= achieved["high_ms"]
    assert achieved["low_ms"] < achieved["high_ms"]
    assert len(said["gone"]) + len(said["left"]) == len(first.findings)
    assert {f["rule"] for f in said["left"]} <= {f.rule for f in second.findings}
    assert bool(said["gone"]) or said["predicted_ms"] == 0
