"""Writes the list of the rules and their pages as text, for `selftime explain`."""

from selftime.advice import rule_registry
from selftime.advice.bottleneck_catalogue import BOTTLENECKS, BOTTLENECKS_WITHOUT_RULE
from selftime.reports.terminal import two_column_text, wrap_paragraphs


def rule_list(*, width: int) -> str:
    """Returns the names and titles of all rules, one a line."""
    titles = ((name, found.title) for name, found in sorted(rule_registry.rules_by_name().items()))
    return two_column_text(titles, width=width) + "\n"


def rule_pages(name: str, *, width: int) -> str:
    """Returns the page of a rule, or those of the rules of an entry of the catalogue, such as A1.

    Raises:
        UsageError: There is no such rule or entry.
    """
    entry = name.upper()
    if entry in BOTTLENECKS_WITHOUT_RULE:
        text = f"{entry}, {BOTTLENECKS[entry]}: {BOTTLENECKS_WITHOUT_RULE[entry]}"
        return wrap_paragraphs(text, width=width) + "\n"
    covering = [found for found in rule_registry.rules_by_name().values() if entry in found.covers]
    return "".join(
        wrap_paragraphs(f"# {page.name}\n\n{page.doc}", width=width) + "\n"
        for page in covering or [rule_registry.find(name)]
    )
