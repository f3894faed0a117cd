"""Records jobs of several processes with a planted cause, and measures what the advice says.

    python corpus/jobs/recorded.py [--only WORD] [-o corpus/jobs/recorded.csv]

Each job of `programs` runs twice without a recording, with its cause and without, and once under
`selftime run torchrun`. A cause is found if a rule has a finding that names the rank or the stage
where it was planted, on a line that ends with `# planted` where there is one. It takes a quiet
machine with a core for each rank.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

PROGRAMS = Path(__file__).parent / "programs"
RULES = ("slow_rank", "stage_imbalance", "micro_batch_imbalance")


@dataclass(frozen=True, slots=True)
class RecordedJob:
    """A program, the cause planted in it, and what the advice ought to say."""

    program: str
    cause: str
    rule: str | None = None
    """The rule that ought to have a finding; None if none of `RULES` ought to."""
    names: str = ""
    """What its title ought to name."""
    has_line: bool = True
    """Whether it ought to name a planted line."""
    ranks: int = 2
    options: tuple[tuple[str, str], ...] = ()
    """Further variables of the environment."""

    @property
    def label(self) -> str:
        """The job in words."""
        return " ".join([self.program, self.cause, *(value for _, value in self.options)])


JOBS = (
    RecordedJob("data_parallel", "none"),
    RecordedJob("data_parallel", "sleep", "slow_rank", "`rank 1`"),
    RecordedJob("data_parallel", "sleep", "slow_rank", "`rank 0`", options=(("LATE_RANK", "0"),)),
    RecordedJob("data_parallel", "python", "slow_rank", "`rank 1`"),
    RecordedJob("data_parallel", "compute", "slow_rank", "`rank 1`"),
    RecordedJob("data_parallel", "input", "slow_rank", "`rank 1`"),
    RecordedJob("data_parallel", "gc", "slow_rank", "`rank 1`"),
    RecordedJob("data_parallel", "checkpoint", "slow_rank", "`rank 0`"),
    RecordedJob("data_parallel", "jitter"),
    RecordedJob("data_parallel", "lengths", "micro_batch_imbalance", has_line=False),
    RecordedJob("pipeline", "none"),
    RecordedJob("pipeline", "last_stage", "stage_imbalance", "stage 1", has_line=False),
    RecordedJob("pipeline", "first_stage", "stage_imbalance", "stage 0", has_line=False),
    RecordedJob("pipeline", "none", options=(("SCHEDULE", "GPipe"),)),
    RecordedJob(
        "pipeline",
        "last_stage",
        "stage_imbalance",
        "stage 1",
        has_line=False,
        options=(("SCHEDULE", "GPipe"),),
    ),
    RecordedJob("sharded", "none"),
    RecordedJob("sharded", "sleep", "slow_rank", "`rank 1`"),
    RecordedJob("sharded", "compute", "slow_rank", "`rank 1`"),
    RecordedJob("sharded", "length", "slow_rank", "`rank 1`", has_line=False),
    RecordedJob("tensor_parallel", "none"),
    RecordedJob("tensor_parallel", "sleep", "slow_rank", "`rank 1`"),
    RecordedJob("tensor_parallel", "compute", "slow_rank", "`rank 1`"),
    RecordedJob("experts", "none"),
    RecordedJob("experts", "experts", "slow_rank", "`rank 0`", has_line=False),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="run the jobs whose name has this word")
    parser.add_argument("-o", "--output", type=Path, help="write all rows to this CSV file")
    options = parser.parse_args()
    table = pl.DataFrame([measured(job) for job in JOBS if options.only in job.label])
    if options.output:
        table.write_csv(options.output)
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=160, fmt_str_lengths=60):
        print(table.drop("title"))


def measured(job: RecordedJob) -> dict[str, Any]:
    """Returns what a job takes with and without its cause, and what the advice says of it."""
    with_cause = step_ms(job, job.cause)
    without = step_ms(job, "none") if job.cause != "none" else with_cause
    with tempfile.TemporaryDirectory() as folder:
        environment = variables(job, job.cause)
        selftime = [sys.executable, "-m", "selftime"]
        subprocess.run(
            [*selftime, "run", "--quiet", *launcher(job)],
            cwd=folder,
            env=environment,
            capture_output=True,
            check=True,
        )
        answer = [*selftime, "advise", "selftime-runs", "--format", "json"]
        done = subprocess.run(answer, cwd=folder, capture_output=True, text=True, check=True)
    advice = json.loads(done.stdout)
    findings = [one for one in advice["findings"] if one["rule"] in RULES]
    found = next((one for one in findings if one["rule"] == job.rule), None)
    line = (found or {}).get("where", {}).get("line")
    is_right = found is not None and job.names in found["title"]
    if is_right and job.has_line:
        is_right = line in planted_lines(job.program)
    others = [one["rule"] for one in findings if one is not found]
    return {
        "job": job.label,
        "step_ms": with_cause,
        "without_ms": without,
        "right": is_right if job.rule else not findings,
        "saves_ms": (found or {}).get("saving", {}).get("estimate_ms"),
        "line": line,
        "others": " ".join(others),
        "title": (found or {}).get("title"),
    }


def launcher(job: RecordedJob) -> list[str]:
    """Returns the command that starts the ranks of a job."""
    program = str(PROGRAMS / f"{job.program}.py")
    return ["torchrun", "--nproc-per-node", str(job.ranks), program]


def variables(job: RecordedJob, cause: str) -> dict[str, str]:
    """Returns the environment of a job."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"CAUSE": cause, "OMP_NUM_THREADS": "1", "PATH": path}
    return {**os.environ, **own, **dict(job.options)}


def step_ms(job: RecordedJob, cause: str) -> float:
    """Returns the mean step in ms of a job that is not recorded."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            launcher(job), cwd=folder, env=variables(job, cause), capture_output=True, text=True
        )
    found = re.search(r"mean step ([\d.]+) ms", done.stdout)
    if found is None:
        raise SystemExit(f"{job.label} failed:\n{done.stderr}")
    return float(found[1])


def planted_lines(program: str) -> list[int]:
    """Returns the numbers of the lines of a program that end with `# planted`."""
    text = (PROGRAMS / f"{program}.py").read_text()
    return [at for at, line in enumerate(text.splitlines(), 1) if line.endswith("# planted")]


if __name__ == "__main__":
    main()
