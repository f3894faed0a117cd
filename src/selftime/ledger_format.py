"""Constants of the file format in which a run's wall-time ledger is written and read."""

from typing import Final

LEDGER_FORMAT: Final = "selftime.ledger/1"
"""Name and version of the format of a run's wall-time ledger, written in the file's first line."""

LEDGER_SUFFIX: Final = ".run.jsonl"
"""Suffix of the file name of a run's wall-time ledger."""

TRACE_SUFFIX: Final = ".pt.trace.json.gz"
"""Suffix of the file name of a trace that was recorded."""

SLOW_STEP_SUFFIX: Final = ".slow-step.pt.trace.json.gz"
"""Suffix of the file name of a trace that holds a slow step of a run, beside the run's other
trace."""

BEFORE_FIRST_STEP: Final = -1
"""Number in the column `kind` of the time segment before a program's first step."""

AFTER_LAST_STEP: Final = -2
"""Number in the column `kind` of a time segment after a program's last step, or after the last of
one loop of steps, before the first of the next."""

UNCOUNTED_STEPS: Final = -3
"""Number in the column `kind` of one time segment that contains several steps, whose number is
unknown."""

UNCOUNTED_STEPS_NAME: Final = "steps that were not counted one by one"
"""Name, in tables and reports, of the segments whose kind is `UNCOUNTED_STEPS`."""

LOOP_STEP_KIND: Final = "iteration"
"""Name of the kind of steps that are iterations of the program's main loop; those of another loop
have its line behind that."""

MODULE_STEP_KIND: Final = "inference"
"""Name of the kind of steps that are calls of modules."""

UNUSUAL_KIND_SUFFIX: Final = ", unusual"
"""Suffix of the kind's name, such as `training, unusual`, of a step whose calls differ from
those of most steps."""

MIN_SLOW_STEP_TIME_FACTOR: Final = 2.0
"""A step counts as slow only if its duration is at least this multiple of the median of steps of
its kind."""

MIN_SLOW_STEP_EXCESS_NS: Final = 20_000_000
"""A step counts as slow only if it is at least this much longer, in ns, than the median of its
kind."""

ROLLOUT_KIND: Final = "rollout"
"""Name of the kind of a phase in which a model acts, between two updates of it."""

MIN_PRELUDE_STEPS: Final = 10
"""Steps of a kind that another kind superseded are steps of their own only if there are at least
so many of them."""

OUTSIDE_PHASES: Final = ("data_wait", "epoch_boundary", "evaluation", "recording")
"""Activities that are counted in steps and belong to none of their phases, such as a forward pass.
Garbage collections and compilations are within phases."""

LONGEST_READING_PAUSE_NS: Final = 50_000_000
"""Longest time between two stack samples of a segment, in ns."""


UNUSED_PREFIX: Final = "unused:"
"""Prefix of the digest of a random generator's state if nothing was drawn since it was seeded."""


def is_slow_step_file(path: str) -> bool:
    """Returns whether a file is named as a trace of a slow step, which is none of usual steps.

    >>> is_slow_step_file("runs/host_1_20260102-030405.slow-step.pt.trace.json.gz")
    True
    """
    return ".slow-step." in path.replace("\\", "/").rpartition("/")[2]
