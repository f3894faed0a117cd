"""Checks a recording against an earlier one or against budgets, as `selftime check` does."""
