"""What the documentation gives pipelines to run, run as they run it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

yaml = pytest.importorskip("yaml")
pytest.importorskip("torch")
pytestmark = pytest.mark.torch

PAGE = Path(__file__).parents[3] / "docs" / "check.md"
PROGRAM = """
import torch

net = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(40):
    optimizer.zero_grad()
    net(torch.ones(8, 64)).sum().backward()
    optimizer.step()
"""


def given(heading: str) -> Any:
    """The pipeline below a heading."""
    section = PAGE.read_text("utf-8").split(f"## {heading}\n")[1]
    return yaml.safe_load(section.split("```yaml\n")[1].split("```")[0])


def run(script: str, folder: Path) -> int:
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    known = {"PATH": tools, "GITHUB_STEP_SUMMARY": "summary.md", "SELFTIME_CACHE": "cache"}
    done = subprocess.run(  # noqa: S603 - our own page
        ["/bin/bash", "-e", "-c", script],
        cwd=folder,
        env={**os.environ, **known},
        capture_output=True,
        timeout=200,
        check=False,
    )
    return done.returncode


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a program, a recording and its baseline."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "train.py").write_text(PROGRAM, encoding="utf-8")
    [record] = [step["run"] for step in steps_of("GitHub") if step.get("name") == "Record"]
    assert run(record, folder) == 0
    assert run("selftime check runs --write-baseline baseline.json", folder) == 0
    return folder


def steps_of(heading: str) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = given(heading)["jobs"]["speed"]["steps"]
    return steps


@pytest.mark.sweep
def test_the_workflow_of_github(project: Path) -> None:
    [check] = [step["run"] for step in steps_of("GitHub") if step.get("name") == "Check"]
    assert run(check, project) == 0  # the recording of the baseline itself
    told = (project / "summary.md").read_text("utf-8")
    assert told.startswith("**All measures are within their limits**")
    assert "| within | `operators` |" in told
    assert (project / "check.sarif").is_file()
    again = "sed -i 's/\\(net(torch.ones(8, 64))\\)/\\1.relu()/' train.py && rm -r runs"
    [record] = [step["run"] for step in steps_of("GitHub") if step.get("name") == "Record"]
    assert run(f"{again} && {record}", project) == 0
    assert run(check, project) == 1
    assert "| over | `operators` |" in (project / "check.md").read_text("utf-8")


@pytest.mark.sweep
def test_the_job_of_gitlab(project: Path) -> None:
    *_, check = given("GitLab")["speed"]["script"]
    assert run(check, project) in (0, 1)  # whichever recording is there
    suite = ET.fromstring((project / "check.xml").read_bytes()).find("testsuite")  # noqa: S314 - our own
    assert suite is not None
    names = {case.get("name") for case in suite.findall("testcase")}
    assert "operators against the baseline" in names
