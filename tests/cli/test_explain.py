"""`selftime explain` lists the rules and prints their pages."""

from tests.cli.small_traces import refused, say

from selftime.advice import RULES
from selftime.advice.bottleneck_catalogue import BOTTLENECKS, BOTTLENECKS_WITHOUT_RULE


def test_rules_are_listed_and_explained() -> None:
    lines = say("explain").stdout.splitlines()
    listed = [line.split()[0] for line in lines if not line.startswith(" ")]  # long titles fold
    assert listed == sorted(RULES)
    for rule in listed:
        page = say("explain", rule).stdout
        assert page.startswith(f"# {rule}\n")
        assert "## What to do" in page


def test_a_rule_that_is_not_there() -> None:
    assert "there is no rule `nonesuch`" in refused(say("explain", "nonesuch"))


def test_an_entry_of_the_catalogue_is_explained_by_its_rules() -> None:
    assert say("explain", "f1").stdout == say("explain", "single_tensor_optimizer").stdout
    for entry, reason in BOTTLENECKS_WITHOUT_RULE.items():
        assert (
            " ".join(say("explain", entry).stdout.split())
            == f"{entry}, {BOTTLENECKS[entry]}: {reason}"
        )
