"""Counting by steps."""

from dataclasses import replace

from selftime.capture.preflight.results import (
    HARMLESS_COPY_KIND,
    HostWait,
    PreflightWaits,
    UserSourceLocation,
)

WAIT = HostWait(UserSourceLocation("a.py", 3, "f"), "aten::item", "sync", "forward", "wait less")


def counted(*steps: list[HostWait]) -> PreflightWaits:
    found = PreflightWaits()
    for number, waits in enumerate(steps):
        if number:
            found.end_step()
        for wait in waits:
            found.add_wait(wait)
    return found


def test_nothing_is_found_at_first() -> None:
    found = PreflightWaits()
    assert (found.sites, found.sites_outside_steps, found.harmless_copies, found.steps) == (
        [],
        [],
        0,
        0,
    )


def test_without_steps_the_whole_run_counts() -> None:
    (site,) = counted([WAIT, WAIT]).sites
    assert (site.times, site.in_steps) == (2, 0)


def test_what_recurs_is_counted_by_step() -> None:
    found = counted([WAIT] * 9, [WAIT] * 2, [WAIT] * 2, [])
    (site,) = found.sites
    assert found.steps == 2
    assert (site.times, site.in_steps) == (2, 2)


def test_what_comes_before_or_after_is_outside() -> None:
    late = replace(WAIT, op="aten::equal")
    found = counted([WAIT], [], [late])
    assert found.sites == []
    assert [(site.op, site.times) for site in found.sites_outside_steps] == [
        ("aten::equal", 1),
        ("aten::item", 1),
    ]


def test_some_steps_are_told_from_all() -> None:
    (site,) = counted([], [WAIT] * 3, [], [WAIT], []).sites
    assert (site.times, site.in_steps) == (3, 2)


def test_a_line_is_one_site_though_its_phase_changes() -> None:
    other = replace(WAIT, phase="other")
    (site,) = counted([], [WAIT], [other], [other], []).sites
    assert (site.phase, site.in_steps) == ("other", 3)


def test_copies_that_nobody_waits_for_are_no_site() -> None:
    harmless = replace(WAIT, kind=HARMLESS_COPY_KIND)
    found = counted([], [harmless] * 2, [harmless] * 2, [])
    assert found.sites == []
    assert found.harmless_copies == 2


def test_steps_that_were_wrong_are_forgotten() -> None:
    found = counted([WAIT], [WAIT], [WAIT])
    found.forget_steps()
    (site,) = found.sites
    assert (found.steps, site.times) == (0, 3)
