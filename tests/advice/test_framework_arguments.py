"""A fix names the argument of the framework that creates the object, or the line that does."""

import json
from pathlib import Path
from typing import Any

import pytest

from selftime.advice import framework_arguments
from selftime.advice.advise import advise
from selftime.advice.framework_arguments import ARGUMENT_BY_FRAMEWORK
from selftime.advice.rule_outcomes import Finding
from selftime.reports.advice.text import as_text
from selftime.testing import sketch

ADVICE = Path(framework_arguments.__file__).parent

OPTIMIZER = """
    column = 20 us
    mark 1 | ssssssssssssssssssssssttttttttttttttttttttttuuuuuuuuuuuuuuuuuuuuuu
    mark 1 |     oooooooooooooooooo    oooooooooooooooooo    oooooooooooooooooo
    cpu 1  | ffffmamamamamamamamamaffffmamamamamamamamamaffffmamamamamamamamama
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    o = Optimizer.step#AdamW.step; line = train.py:48 main
    m = aten::mul_
    a = aten::add_
"""


def site(
    class_name: str = "AdamW",
    *packages: str,
    line: int = 48,
    is_direct: bool = False,
    kind: str = "optimizer",
) -> dict[str, Any]:
    return {
        "kind": kind,
        "class_name": class_name,
        "file": "train.py",
        "line": line,
        "function": "main",
        "is_direct": is_direct,
        "packages": list(packages),
    }


def finding(*sites: object) -> Finding:
    facts = json.dumps({"created": sites})
    found = advise(sketch(f"{OPTIMIZER}    facts = {facts}\n")).findings
    [one] = [finding for finding in found if finding.rule == "single_tensor_optimizer"]
    return one


@pytest.mark.parametrize(
    ("package", "code"),
    [
        ("transformers", 'TrainingArguments(..., optim="adamw_torch_fused")'),
        ("skorch", "NeuralNet(..., optimizer__fused=True)"),
        ("stable_baselines3", 'policy_kwargs={"optimizer_kwargs": {"fused": True}}'),
        ("pytorch_tabnet", 'TabNetClassifier(..., optimizer_params={"lr": ..., "fused": True})'),
    ],
)
def test_a_framework_that_creates_the_optimizer_has_an_argument(package: str, code: str) -> None:
    fix = finding(site("AdamW", "some_library", package)).fix
    assert fix.code == code
    assert fix.text.endswith("has an argument for it.")


@pytest.mark.parametrize("package", ["ultralytics", "unknown"])
def test_without_an_argument_the_call_is_named(package: str) -> None:
    fix = finding(site("AdamW", package, line=7)).fix
    assert fix.code == "torch.optim.AdamW(..., fused=True)"
    assert fix.text.endswith("AdamW comes from the call at `train.py:7`.")


def test_the_line_that_creates_the_optimizer_is_named() -> None:
    fix = finding(site("AdamW", "lightning", line=12, is_direct=True)).fix
    assert fix.code == "torch.optim.AdamW(..., fused=True)"
    assert fix.text.endswith("AdamW is created at `train.py:12`.")


@pytest.mark.parametrize(
    "sites",
    [
        (),
        (site("SGD", "skorch"),),
        (site("AdamW", line=12, is_direct=True), site("AdamW", line=13, is_direct=True)),
        (site("AdamW", line=12, is_direct=True), site("AdamW", "skorch", line=13)),
        (site("AdamW", line=48, is_direct=True),),
        (site("AdamW", "skorch", kind="loader"),),
        ("no site", {"kind": "optimizer"}),
    ],
)
@pytest.mark.sweep(3)
def test_nothing_is_said_of_what_is_not_known(sites: tuple[object, ...]) -> None:
    told = finding(*sites)
    assert told.fix == finding().fix
    assert "created" not in told.fix.text


def test_every_framework_formats_its_arguments() -> None:
    for arguments in ARGUMENT_BY_FRAMEWORK.values():
        for template in arguments.values():
            code = template.format(value="8")
            compile(code if "=" not in code.partition("(")[0] else f"f({code})", "fix", "exec")


def test_every_argument_is_one_that_a_rule_sets() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ADVICE / "rules").rglob("*.py")]
    sources += [path.read_text(encoding="utf-8") for path in (ADVICE / "detectors").glob("*.py")]
    text = "".join(sources)
    known = {name for arguments in ARGUMENT_BY_FRAMEWORK.values() for name in arguments}
    forms = {"fused", "foreach"}  # those of `OptimizerForm`
    assert forms < known
    assert {name for name in known - forms if f'", "{name}", ' not in text} == set()


def test_a_file_is_named_as_in_other_lines() -> None:
    told = site("AdamW", line=12, is_direct=True) | {"file": "/srv/code/train.py"}
    advice = advise(sketch(f"{OPTIMIZER}    facts = {json.dumps({'created': [told]})}\n"))
    assert "AdamW is created at `code/train.py:12`." in as_text(advice, root="/srv", width=200)


def test_a_name_from_the_notes_ends_no_quotation() -> None:
    odd = site("AdamW", line=12, is_direct=True) | {"file": "a`b.py"}
    assert "`a'b.py:12`" in finding(odd).fix.text
