"""Judges why a job hangs: which rank did not enter which collective, and where it is instead."""

from selftime.analysis.hang.differences import Difference, DifferenceKind, Variant
from selftime.analysis.hang.job_groups import JobGroup
from selftime.analysis.hang.judgement import Hang, RankState, Verdict, hang

__all__ = [
    "Difference",
    "DifferenceKind",
    "Hang",
    "JobGroup",
    "RankState",
    "Variant",
    "Verdict",
    "hang",
]
