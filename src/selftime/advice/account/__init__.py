"""The account of the step in the advice: rows that add up to it, each with a verdict."""
