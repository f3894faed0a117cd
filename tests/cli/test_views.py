"""`selftime views` lists every view with its options and columns."""

import json

from tests.cli.small_traces import say

from selftime.views import VIEWS


def test_people_read_names_and_titles() -> None:
    lines = say("views").stdout.splitlines()
    listed = [line.split()[0] for line in lines if not line.startswith(" ")]  # long titles fold
    assert listed == sorted(VIEWS)


def test_programs_read_options_and_columns() -> None:
    told = {v["name"]: v for v in json.loads(say("views", "--format", "json").stdout)["views"]}
    assert told.keys() == VIEWS.keys()
    for name, view in VIEWS.items():
        assert [option["name"] for option in told[name]["options"]] == list(view.options)
        assert [column["name"] for column in told[name]["columns"]] == [
            column.name for column in view.columns
        ]
