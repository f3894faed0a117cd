"""The source lines in the stacks that records of memory have of their own."""

import polars as pl

from selftime import names
from selftime.views.accounts.sites import SITE

__all__ = ["stack_lines"]

_TYPES = {"stack": pl.String, **dict.fromkeys(SITE, pl.String), "line": pl.Int32}


def stack_lines(stacks: pl.Series) -> pl.DataFrame:
    """The executing lines in each distinct stack, each once, innermost first.

    They are those of the user's own functions; of a stack without any, the innermost of a library.

    Returns:
        Columns stack, file, line, function, how, and `innermost`, of which a stack has at most one.
    """
    rows = []
    for stack in stacks.drop_nulls().unique().cast(pl.String).to_list():
        frames = [found for entry in stack.split(";") if (found := names.frame(entry))]
        user = [one for one in frames if one.origin == "user"]
        chosen = user or [one for one in frames if one.origin == "library"][:1]
        sites = dict.fromkeys((one.file, one.line, one.function) for one in chosen)
        rows += [(stack, *site, "stack", place == 0) for place, site in enumerate(sites)]
    return pl.DataFrame(rows, schema={**_TYPES, "innermost": pl.Boolean}, orient="row")
