"""`selftime redact`: nothing private is left, and the analysis is what it was."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest
from tests.ingest.rough.case import annotation, document, kernel, launch, op
from typer.testing import CliRunner

from selftime import names
from selftime.cli import app
from selftime.ingest.load import load
from selftime.rewrite.private_data_removal import PrivateTextReplacements
from selftime.trace import Trace

RUN: Final = CliRunner()
Event = dict[str, Any]

SECRETS: Final = (
    "janedoe", "gpu-box-17", "corp.example", "Project Falcon", "falcon-data",
    "hf_abcdefABCDEF123456",
    "10.11.12.13", "fe80:0:0:0:1:2:3:4", "5f3a9c0e-1b2d-4e5f-8a9b-0c1d2e3f4a5b", "0000:3b:00.0",
    "hunter22",
)  # fmt: skip
"""What must not be in any byte of the file."""

HOME: Final = "/" + "home/janedoe"
"""Put together, for no file of the repository names a home folder."""

PLANTED: Final = (
    f"{HOME}/Project Falcon/net.py(3): forward",
    "C:\\Users\\janedoe\\Project Falcon\\net.py(3): forward",
    f"{HOME}/a.py(1): f;{HOME}/lib/python3.10/site-packages/torch/x.py(2): g",
    f"{HOME}/a.py(1): f\n/data/falcon-data/b.py(2): g",
    "janedoe@corp.example", "ssh://janedoe@gpu-box-17.corp.example/falcon-data",
    "s3://falcon-data/x",
    "run of JANEDOE on gpu-box-17", "GPU-BOX-17: 10.11.12.13 [fe80:0:0:0:1:2:3:4]",
    "hf_abcdefABCDEF123456", "password=hunter22", "api_key: hunter22",
    "GPU-5f3a9c0e-1b2d-4e5f-8a9b-0c1d2e3f4a5b at 0000:3b:00.0", "falcon-data/sets/train.json",
    "/srv/falcon-data/sets/train", "~janedoe/falcon-data", "\\\\gpu-box-17\\falcon-data\\x",
)  # fmt: skip
"""Texts that hold them, as they occur in names, stacks and arguments."""


def escaped(text: str) -> str:
    """A string of JSON with every character as an escape."""
    return '"' + "".join(f"\\u{ord(one):04x}" for one in text) + '"'


def slashed(text: str) -> str:
    """A string of JSON with its slashes escaped."""
    return json.dumps(text).replace("/", "\\/")


def planted() -> Iterator[str]:
    """Events with each text in each of their strings, keys included, written in three ways."""
    number = 100
    for text in PLANTED:
        for write in (json.dumps, escaped, slashed):
            told, number = write(text), number + 1
            yield (
                f'{{"ph": "X", "cat": "cpu_op", "name": {told}, "pid": 7, "tid": 7, '
                f'"ts": {1000 + 10 * number}.250, "dur": 5, "args": {{"Call stack": {told}, '
                f'"Concrete Inputs": ["", {told}], {told}: 1, "mine": {{"deep": [{told}]}}}}}}'
            )
            yield (
                f'{{"ph": "X", "cat": {told}, "name": "x", "pid": {told}, "tid": {told}, '
                f'"ts": {1000 + 10 * number}, "dur": 5, {told}: {told}}}'
            )
            label = '{"ph": "M", "name": "thread_name", "pid": 7, "tid": 7, "args": '
            yield f'{label}{{"name": {told}}}}}'


def header() -> dict[str, Any]:
    """Keys of the file that hold private texts by their name or by their form."""
    return {
        "host_name": "gpu-box-17.corp.example",
        "traceName": f"{HOME}/Project Falcon/trace.json",
        "deviceProperties": [
            {"id": 0, "name": "NVIDIA H100", "uuid": "GPU-janedoe", "pciBusID": 1234567,
             "serial": "falcon-data"},
        ],
        "selftime": {
            "format": "selftime.facts/1", "host": "gpu-box-17",
            "argv": ["train.py", "--name", "Project Falcon"],
            "cwd": f"{HOME}/Project Falcon", "paths": [f"{HOME}/Project Falcon"],
            "settings": {
                "threads": 4, "environment": {"OMP_NUM_THREADS": "4", "X": "Project Falcon"},
            },
            "lines": {"files": ["falcon-data/net.py"], "functions": ["forward"], "id": [1],
                      "file": [0], "line": [3], "function": [0], "how": [0]},
        },
        "janedoe": {f"{HOME}/x": "janedoe"},
        "distributedInfo": {"pg_config": [{"pg_name": "0", "pg_desc": "falcon-data"}], "rank": 0},
    }  # fmt: skip


def redact(path: Path, *words: str, name: str = "out.json") -> tuple[dict[str, Any], Path]:
    output = path.parent / name
    done = RUN.invoke(app, ["redact", str(path), "-o", str(output), "--format", "json", *words])
    assert done.exit_code == 0, done.output
    told: dict[str, Any] = json.loads(done.stdout)
    assert not any(secret.lower() in done.output.lower() for secret in SECRETS)
    return told, output


def read(path: Path) -> Trace:
    trace = load(path, cache=False)
    assert isinstance(trace, Trace)
    return trace


@pytest.fixture
def secret_trace(tmp_path: Path) -> Path:
    base = [json.dumps(one) for one in (annotation(0), op(0), launch(0), kernel(0))]
    text = document([], **header()).decode().replace('"traceEvents": [\n  ', '"traceEvents": [\n')
    begin, end = text.split("[\n", 1) if text.count("[\n") == 1 else text.rsplit("[\n", 1)
    path = tmp_path / "t.json"
    path.write_text(f"{begin}[\n{','.join([*base, *planted()])}{end}", "utf-8")
    return path


@pytest.mark.parametrize("options", [(), ("--names",)])
def test_no_secret_survives(secret_trace: Path, options: tuple[str, ...]) -> None:
    assert any(secret.encode() in secret_trace.read_bytes() for secret in SECRETS)
    told, output = redact(secret_trace, *options)
    content = output.read_bytes()
    texts = content.decode() + json.dumps(json.loads(content), ensure_ascii=False)
    left = [secret for secret in SECRETS if secret.lower() in texts.lower()]
    assert left == []
    assert told["format"] == "selftime.redact/1"
    assert {"folder", "host", "user", "e-mail", "secret", "network address"} <= set(told["hidden"])


def test_what_stays(secret_trace: Path) -> None:
    """Times, ids, plain values, base names, and what is one stays one."""
    _, output = redact(secret_trace)
    before, after = read(secret_trace), read(output)
    assert after.slices["start"].equals(before.slices["start"])
    assert after.slices.height == before.slices.height
    assert b".250," in output.read_bytes()
    facts = after.facts
    assert facts["settings"]["environment"]["OMP_NUM_THREADS"] == "4"
    assert facts["lines"]["files"][0].endswith("/net.py")
    name = before.slices["name"].cast(pl.String)
    hidden = after.slices["name"].cast(pl.String)
    assert dict(zip(name, hidden, strict=True)) == dict(
        pl.DataFrame({"a": name, "b": hidden}).unique().rows()
    )
    assert {"op0", "kernel0", "ProfilerStep#0", "cudaLaunchKernel"} <= set(hidden)


def test_words_differ_from_run_to_run(secret_trace: Path) -> None:
    first, second = (redact(secret_trace, name=name)[1] for name in ("1.json", "2.json"))
    assert first.read_bytes() != second.read_bytes()


def test_more_to_hide_and_less(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(
        document([op(0, name="falcon_block/attention"), op(1, name="/data/open/x.py")])
    )
    _, output = redact(path, "--replace", r"falcon\w*", "--keep", "/data/open")
    names_left = list(read(output).slices["name"].cast(pl.String))
    assert names_left[0].startswith("pattern-")
    assert names_left[0].endswith("/attention")
    assert names_left[1] == "/data/open/x.py"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--replace", "("], "is not a regular expression"),
        (["--keep", "*"], "is not a regular expression"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(tmp_path: Path, words: list[str], told: str) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(document())
    done = RUN.invoke(app, ["redact", str(path), "-o", str(tmp_path / "o.json"), *words])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert told in done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["t.json"]


def test_it_packs_and_says_what_it_mended(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(document()[:-200])
    told, output = redact(path, name="o.json.gz")
    json.loads(gzip.decompress(output.read_bytes()))
    assert [row["example"] for row in told["mended"]] == [None] * 3


@pytest.mark.parametrize(
    "text",
    [
        "torch/nn/modules/linear.py(116): forward", "aten::add", "<built-in function len>",
        "void at::native::kernel<4, float>(int, char*)", "nn.Module: Net_0", "ProfilerStep#12",
        "memory bandwidth (GB/s)", "Memcpy HtoD (Pageable -> Device)", "12.4.1", "train.py(3): f",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "stream 7 (2)",
        "ampere_sgemm_128x64_nn", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
    ],
)  # fmt: skip
def test_names_that_the_analysis_knows_stay(text: str) -> None:
    assert names.redact_text("name", text, PrivateTextReplacements()) == text


def test_a_very_long_text_takes_no_more_than_its_length() -> None:
    for part in ("a", "(", "a/", "1.2.", "a@", "~a", "./a", "a:", "//", "f(1): ", "a;"):
        text = part * 20_000
        assert names.redact_text("name", text, lambda kind, _: kind) is not None


VIEWS: Final = ("operators", "kernels", "steps", "overview", "idle", "lines", "memory_operators")
REAL: Final = ("h100-2025-bert-small", "mi300-2025-bert-small", "a100-2024-triton")


@pytest.mark.parametrize("name", REAL)
def test_the_answers_are_the_same_but_for_names(
    name: str, real_traces: Path, tmp_path: Path
) -> None:
    whole = real_traces / f"{name}.json.gz"
    output = tmp_path / "out.json.gz"
    done = RUN.invoke(app, ["redact", str(whole), "-o", str(output), "--names"])
    assert done.exit_code == 0, done.output
    before, after = read(whole), read(output)
    for view in VIEWS:
        expected, found = (trace.view(view) for trace in (before, after))
        numbers = [c for c, dtype in expected.schema.items() if dtype.is_numeric()]
        for column in numbers:
            assert sorted(found[column].drop_nulls()) == sorted(expected[column].drop_nulls())
            assert found[column].null_count() == expected[column].null_count()
