"""Labels: every value of an enumerated column has one, and the page gets it."""

import re
from collections.abc import Collection
from typing import Final, get_args

import pytest

from selftime.advice.rule_outcomes import LineEvidence
from selftime.analysis.account.time_classes import TIME_CLASSES
from selftime.analysis.idle.gap_causes import IDLE_GAP_CAUSES
from selftime.analysis.ranks.rank_summary import LATENESS_CAUSES
from selftime.reports.labels import column_labels
from selftime.reports.page_data.views import label_data, view_description_data
from selftime.views import VIEWS

_DOC_OF_RUN_PARTS: Final = next(c.doc for c in VIEWS["run"].columns if c.name == "part")
RUN_PARTS: Final = re.findall(r"\w+", _DOC_OF_RUN_PARTS.partition(":")[2].replace(" or ", " "))
"""The parts of a run, as the description of the column lists them."""

ENUMERATIONS: Final[dict[tuple[str, str], Collection[str]]] = {
    ("run", "part"): RUN_PARTS,
    ("run_steps", "cause"): [*RUN_PARTS, "queued", "program"],
    ("run_curve", "cause"): [*RUN_PARTS, "queued", "program"],
    ("account", "class"): TIME_CLASSES,
    ("idle", "cause"): [*IDLE_GAP_CAUSES, "kernel_gap"],
    ("stragglers", "cause"): [*LATENESS_CAUSES, "clocks"],
    ("lines", "how"): get_args(LineEvidence),
}
"""Every value of each column that has labels, by view and column."""


@pytest.mark.parametrize(("view", "column"), ENUMERATIONS)
def test_each_value_of_an_enumeration_is_sent_with_its_label(view: str, column: str) -> None:
    sent = {known["name"]: known for known in view_description_data(VIEWS[view])["columns"]}
    labels = sent[column]["labels"]
    assert set(labels) == set(ENUMERATIONS[view, column])
    assert all(label["text"] for label in labels.values())


def test_a_comparison_of_runs_names_parts_as_the_run_does() -> None:
    assert label_data("run_parts", "part") == label_data("run", "part")


def test_a_column_of_names_has_no_labels() -> None:
    assert column_labels("operators", "name") == {}


def test_only_what_stands_differently_after_a_time_has_a_phrase_of_its_own() -> None:
    parts = column_labels("run", "part")
    assert parts["first_batch"].phrase == "for the first batch"
    assert parts["data_wait"].phrase == parts["data_wait"].text == "waiting for data"
