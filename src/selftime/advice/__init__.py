"""Advice: rules that read views and say what to change, on which line, and what it saves."""

from selftime.advice.advise import advise
from selftime.advice.answer import Advice, Health, Joint, Note, Step
from selftime.advice.base import (
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
from selftime.advice.registry import find
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
