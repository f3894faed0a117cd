"""Finds what makes a PyTorch program slow, on which source line, and how much time a fix saves."""

from selftime.advice.advice_result import Advice, Health, JointSaving, Note, TypicalStep
from selftime.advice.advise import advise
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Rule,
    Saving,
    Unknown,
    Where,
    rule,
)
from selftime.advice.rule_registry import find
from selftime.advice.rules import RULES

Joint = JointSaving
"""Short name of `JointSaving`, which other packages may import."""
Step = TypicalStep
"""Short name of `TypicalStep`, which other packages may import."""

__all__ = [
    "RULES",
    "Advice",
    "Checked",
    "Evidence",
    "Finding",
    "Fix",
    "Health",
    "Joint",
    "JointSaving",
    "Note",
    "Outcome",
    "Rule",
    "Saving",
    "Step",
    "TypicalStep",
    "Unknown",
    "Where",
    "advise",
    "find",
    "rule",
]
