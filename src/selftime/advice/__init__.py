"""Finds what makes a PyTorch program slow, on which source line, and how much time a fix saves."""

from selftime.advice.advice_result import Advice, Health, Joint, Note, Step
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

__all__ = [
    "RULES",
    "Advice",
    "Checked",
    "Evidence",
    "Finding",
    "Fix",
    "Health",
    "Joint",
    "Note",
    "Outcome",
    "Rule",
    "Saving",
    "Step",
    "Unknown",
    "Where",
    "advise",
    "find",
    "rule",
]
