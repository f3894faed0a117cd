"""`selftime redact --names`: of a word in any field of a trace nothing is left in any output."""

import base64
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from tests.ingest.rough.case import annotation, document, kernel, launch, op
from typer.testing import CliRunner

from selftime.cli import app
from selftime.names import public_names

RUN: Final = CliRunner()
Event = dict[str, Any]
PREFIX: Final = "qz"
"""Begins each planted word, and is in no output of a trace without them."""


def word(number: int) -> str:
    return f"{PREFIX}w{number:03}{PREFIX}"


def planted() -> tuple[list[Event], dict[str, Any], list[str]]:
    """Events and keys of a file with a word of its own in each field that a user can fill."""
    words: list[str] = []

    def new() -> str:
        words.append(word(len(words)))
        return words[-1]

    def frame(name: str, at: int) -> Event:
        return {"ph": "X", "cat": "python_function", "name": name, "pid": 7, "tid": 7, "ts": at,
                "dur": 3, "args": {"Python id": at}}  # fmt: skip

    events: list[Event] = []
    for number in range(9):
        at = 1000 + 100 * number
        if number % 3 == 0:
            events.append(annotation(number // 3, ts=at - 2, dur=299))
        events += [op(number, ts=at), launch(number, ts=at + 1), kernel(number, ts=at + 50)]
    at = 1004
    events += [
        op(20, ts=at, name=f"{new()}::{new()}", args={
            "External id": 20, "Call stack": f"{new()}.py(3): {new()};torch/x.py(1): f",
            "Concrete Inputs": ["", new()], new(): new(), "Input Dims": [[2]]}),
        op(21, ts=at + 100, name=new()),
        op(22, ts=at + 200, name=f"{new()}Backward"),
        op(23, ts=at + 300, name=f"autograd::engine::evaluate_function: {new()}Backward"),
        kernel(24, ts=at + 400, name=f"void {new()}::{new()}<float>(int)"),
        kernel(25, ts=at + 440, name=f"triton_{new()}_kernel_0d1d"),
        {**annotation(0, ts=at + 500, dur=20), "name": f"## {new()} ##"},
        {**annotation(0, ts=at + 530, dur=20), "name": new()},
        {**annotation(0, ts=at + 560, dur=20), "name": f"[pl][module]{new()}.Net: {new()}"},
        {**annotation(0, ts=at + 590, dur=5), "name": f"Optimizer.step#{new()}.step"},
        frame(f"nn.Module: {new()}_0", at + 600),
        frame(f"{new()}/{new()}.py(31): {new()}", at + 610),
        frame(f"{new()}.py(31): {new()}", at + 620),
        frame(f"/data/{new()}/{new()}.py(31): {new()}", at + 630),
        frame(f"<built-in method {new()} of PyCapsule object at 0x7f>", at + 640),
        {"ph": "X", "cat": new(), "name": new(), "pid": 7, "tid": new(), "ts": at + 650, "dur": 2},
        {"ph": "i", "s": "t", "name": new(), "pid": 7, "tid": 7, "ts": at + 660},
        {"ph": "C", "name": new(), "pid": 7, "ts": at + 670, "args": {new(): 3}},
        {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "ts": 0, "args": {"name": new()}},
        {"ph": "M", "name": "process_labels", "pid": 7, "tid": 0, "ts": 0,
         "args": {"labels": new()}},
        {"ph": "M", "name": "thread_name", "pid": 7, "tid": 7, "ts": 0,
         "args": {"name": f"thread 7 ({new()})"}},
    ]  # fmt: skip
    keys = {
        new(): {"deep": [new(), {new(): new()}]},
        "traceName": f"/data/{new()}/trace.json",
        "host_name": f"{new()}.example",
        "distributedInfo": {"rank": 0, "world_size": 1,
                            "pg_config": [{"pg_name": new(), "pg_desc": new()}]},
        "selftime": {
            "format": "selftime.facts/1", "host": new(), "argv": [f"{new()}.py", "--x", new()],
            "cwd": f"/data/{new()}", "paths": [f"/data/{new()}"],
            "created": [{"kind": "optimizer", "class_name": new(), "file": f"{new()}.py", "line": 3,
                         "function": new(), "is_direct": True, "packages": []}],
            "workers": {"loaders": [{"dataset": new()}],
                        "lines": {"files": [f"{new()}.py"], "functions": [new()]}},
            "lines": {"files": [f"{new()}.py"], "functions": [new()], "id": [1], "file": [0],
                      "line": [3], "function": [0], "how": [0]},
        },
    }  # fmt: skip
    return events, keys, words


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], list[str]]:
    """A redacted trace in a folder of its own, what the command told, and the planted words."""
    events, keys, words = planted()
    secret = tmp_path_factory.mktemp("secret") / "t.json"
    secret.write_bytes(document(events, **keys))
    content = secret.read_text()
    assert all(one in content for one in words)
    path = tmp_path_factory.mktemp("shared") / "shared.json"
    done = RUN.invoke(app, ["redact", str(secret), "-o", str(path), "--names", "--format", "json"])
    assert done.exit_code == 0, done.output
    assert_clean(done.output.encode())
    return path, json.loads(done.stdout), words


def unpacked(data: bytes) -> Iterator[bytes]:
    """What is in a file: as it is, and what is packed in it by gzip, or as base64 in a page."""
    yield data
    if data[:2] == b"\x1f\x8b":
        yield gzip.decompress(data)
    for part in re.findall(rb"[A-Za-z0-9+/]{64,}={0,2}", data):
        packed = base64.b64decode(part[: len(part) // 4 * 4])
        for window in (15, -15, 31):
            with suppress(zlib.error):
                yield zlib.decompressobj(window).decompress(packed)


def assert_clean(data: bytes) -> None:
    for part in unpacked(data):
        found = re.search(rb"(?i).{,80}qzw\d{3}qz.{,80}", part, re.DOTALL)
        assert found is None, found[0]


def test_the_trace_holds_no_word(shared: tuple[Path, dict[str, Any], list[str]]) -> None:
    path, told, _ = shared
    assert_clean(path.read_bytes())
    assert told["kept"]["other"] == ["cudaLaunchKernel"]
    assert told["kept"]["annotation"] == ["ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"]
    assert {"annotation", "operator", "kernel", "module", "label"} <= set(told["hidden"])


OUTPUTS: Final = (
    ("export", "--to", "chrome", "-o", "a.json"),
    ("export", "--to", "perfetto", "-o", "a.pftrace"),
    ("export", "--to", "speedscope", "-o", "a.speedscope.json"),
    ("export", "--to", "folded", "-o", "a.folded"),
    ("report", "-o", "a.html"),
    ("cut", "-o", "b.json"),
)


@pytest.mark.parametrize("words", OUTPUTS, ids=lambda words: "-".join(words[:3]))
def test_no_output_holds_a_word(
    words: tuple[str, ...], shared: tuple[Path, dict[str, Any], list[str]], tmp_path: Path
) -> None:
    command, *options, name = words
    done = RUN.invoke(app, [command, str(shared[0]), *options, str(tmp_path / name)])
    assert done.exit_code == 0, done.output
    assert_clean((tmp_path / name).read_bytes())
    assert_clean(done.output.encode())


@pytest.mark.parametrize(
    "words",
    [("advise",), ("advise", "--format", "json"), ("view", "operators"), ("view", "annotations"),
     ("view", "kernels"), ("view", "modules"), ("view", "lines"), ("view", "health")],
    ids="-".join,
)  # fmt: skip
def test_no_answer_holds_a_word(
    words: tuple[str, ...], shared: tuple[Path, dict[str, Any], list[str]]
) -> None:
    command, *rest = words
    names_of_views, options = (rest[:1], rest[1:]) if command == "view" else ([], rest)
    done = RUN.invoke(app, [command, *names_of_views, str(shared[0]), *options])
    assert done.exit_code == 0, done.output
    assert_clean(done.output.encode())


def test_it_lists_what_it_keeps(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(document([op(0, name="aten::mm"), op(1, name="acme::mm")]))
    done = RUN.invoke(app, ["redact", str(path), "-o", str(tmp_path / "o.json"), "--names"])
    assert "kept, operator: aten::mm\n" in done.stdout
    assert "acme" not in done.output + (tmp_path / "o.json").read_text()


@pytest.mark.parametrize(
    ("category", "name"),
    [
        ("cpu_op", "aten::addmm"), ("cpu_op", "AddmmBackward0"), ("cpu_op", "nccl:all_reduce"),
        ("cpu_op", "autograd::engine::evaluate_function: MmBackward0"),
        ("cpu_op", "torch::autograd::AccumulateGrad"), ("user_annotation", "ProfilerStep#12"),
        ("user_annotation", "Optimizer.step#AdamW.step"), ("kernel", "ampere_sgemm_128x64_nn"),
        ("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
        ("kernel", "void at::native::vectorized_elementwise_kernel<4, float>(int)"),
        ("kernel", "triton_poi_fused_add_mul_0"), ("cuda_runtime", "cudaLaunchKernel"),
        ("kernel", "nvjet_tst_192x8_64x8_4x1_v_bz_TNT"), ("kernel", "gemv2T_kernel<int>"),
        ("python_function", "nn.Module: Conv2d_3"), ("python_function", "<built-in method relu>"),
        ("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)"), ("cuda_driver", "cuLaunchKernel"),
    ],
)  # fmt: skip
def test_names_of_recorders_and_public_libraries_are_kept(category: str, name: str) -> None:
    assert public_names.is_public_name(category, name)


@pytest.mark.parametrize(
    "name",
    [
        "acme_gemm",
        "void acme::at::run<float>()",
        "my_nccl_kernel",
        "void at::native::elementwise_kernel<128, at::native::apply<acme::Falcon> >(int)",
    ],
)
def test_a_kernel_of_the_user_is_not_kept_for_a_word_in_it(name: str) -> None:
    assert not public_names.is_public_name("kernel", name)
