"""Builds the account of a step from its segments, the findings, and what is known of the work.

A row is the time of one class at one line, or of one operator where no line is known; what a
finding claims is a row of its own. Rows are fractions of the step, rounded to nanoseconds one after
another, so that they add up to it exactly.
"""

from dataclasses import replace
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.account.account_rows import (
    AccountRow,
    AccountVerdict,
    KindAccount,
    StepAccount,
    parts_of_rows,
    time_of_rows_ms,
)
from selftime.advice.account.claimed_time import (
    CLAIMED_SEGMENT_COLUMN,
    segments_with_claiming_finding,
)
from selftime.advice.account.row_sentences import (
    WAIT_FOR_EARLIER_WORK_SENTENCE,
    OperatorsOfRow,
    UnexplainedTime,
    needed_sentence,
    small_sentence,
)
from selftime.advice.lines.function_callers import callers_of_place
from selftime.advice.rule_outcomes import EVIDENCE_OF_LINE, Finding, Where, where_from_row
from selftime.advice.well_optimised_verdict import MIN_COMPUTING_OPERATOR_NS
from selftime.analysis.account.device_times import device_times_of_mean_step
from selftime.analysis.account.step_account import account_segments_of_kind, names_of_kinds
from selftime.analysis.account.step_bounds import what_bounds_the_step, with_time_of_mean_step
from selftime.analysis.account.useful_work import (
    efficiencies_of_segments,
    least_efficiency_of_needed_work,
)
from selftime.analysis.recording_slowdown import recording_slowdown
from selftime.analysis.slice_filters import common_value_expression, matches_name
from selftime.analysis.slice_grouping import equal_row_group_numbers
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS
from selftime.intervals import union
from selftime.trace import Trace

MIN_ROW_SHARE: Final = 0.02
"""Smallest share of the step of a row that stands alone; smaller ones of a class are merged."""

MIN_SHARE_OF_NAMED_FINDING_ROW: Final = 0.25
"""Smallest share of the time of a class that a finding claims for an operator to have a row of its
own, where no line is known; the others are one row."""
_SEGMENT_COLUMNS: Final = (
    "class",
    "what",
    "start",
    "end",
    "slice",
    "on_device",
    *SOURCE_SITE_COLUMNS,
)
"""Columns of the segments that rows are made of."""
_ROW_KEYS: Final = ("class", "on_device", CLAIMED_SEGMENT_COLUMN, "is_needed", "place")
"""Columns by which segments are grouped into rows."""
_WORK_COLUMNS: Final = ("by_memory", "in_products", "median_ns", "flops_rate", "bytes_rate")
"""Columns of what is known of a row's work; rows that are merged have those of the largest."""
_MEAN_WORK_COLUMNS: Final = ("efficiency", "short_share")
"""Columns of shares that rows that are merged have the mean of, by their time."""
_MERGED_ROW_KEYS: Final = ("class", "on_device", "is_needed", CLAIMED_SEGMENT_COLUMN)
"""Columns by which rows that are too short to stand alone are merged."""


def account_of_step(
    trace: Trace, findings: tuple[Finding, ...], *, has_all_ranks: bool = False
) -> StepAccount | None:
    """Returns what the step's time was spent on, with a verdict of each row; None without steps.

    Args:
        trace: The trace.
        findings: What was found in it, in the order in which it is advised, with ids.
        has_all_ranks: Whether the traces of the other ranks of its job were looked at, too.
    """
    kinds = names_of_kinds(trace)
    told = [
        KindAccount(name, account)
        for name in (kinds if len(kinds) > 1 else [])
        if (account := _account_of_steps(trace, findings, name, has_all_ranks)) is not None
    ]
    whole = _account_of_steps(trace, findings, None, has_all_ranks)
    return whole and replace(whole, kinds=tuple(told))


def _account_of_steps(
    trace: Trace, findings: tuple[Finding, ...], kind: str | None, has_all_ranks: bool
) -> StepAccount | None:
    """Returns the account of the counted steps, all or those of one kind; None without steps."""
    segments, steps = account_segments_of_kind(trace, kind)
    if not segments.height:
        return None
    pieces = _pieces_with_evidence(trace, segments.select(_SEGMENT_COLUMNS), findings)
    pieces = with_time_of_mean_step(trace, pieces, steps)
    table = _with_merged_small_rows(_rows_of_pieces(pieces))
    rows = _account_rows(UnexplainedTime(trace, has_all_ranks), table, steps, findings)
    return StepAccount(
        step_ms=time_of_rows_ms(rows),
        steps=steps,
        basis="recorded" if recording_slowdown(trace) is None else "unrecorded",
        bound_by=what_bounds_the_step(pieces, uses_device=trace.device_args.height > 0),
        device=device_times_of_mean_step(trace, segments, steps),
        parts=parts_of_rows(rows),
        rows=rows,
        found_ms=_ms_with_verdict(rows, "finding"),
        needed_ms=_ms_with_verdict(rows, "needed"),
        small_ms=_ms_with_verdict(rows, "small"),
        unexplained_ms=_ms_with_verdict(rows, "unexplained"),
    )


def _pieces_with_evidence(
    trace: Trace, segments: pl.DataFrame, findings: tuple[Finding, ...]
) -> pl.DataFrame:
    """Returns the segments, cut by finding, with what is known of each piece.

    Columns are added: time in ns; finding, its index; efficiency and others, see
    `efficiencies_of_segments`; is_on_host, whether it is a slice of the host; is_short, whether
    that slice is too short to compute much; ran_then, whether that slice ran meanwhile: an idle
    piece is before its slice; is_needed; place, what tells the rows of a class apart.
    """
    pieces = segments_with_claiming_finding(trace, segments, findings)
    pieces = _with_lines_of_findings(pieces, findings)
    pieces = pieces.hstack(efficiencies_of_segments(trace, pieces))
    least = least_efficiency_of_needed_work(trace)
    is_unclaimed = pl.col(CLAIMED_SEGMENT_COLUMN).is_null()
    slices = trace.slices.select("category", "start", "duration")[pieces["slice"]]
    category, duration = slices["category"], slices["duration"]
    is_over = (slices["start"] + duration <= pieces["start"]).fill_null(value=False)
    ran_then = (slices["start"] < pieces["end"]) & ~is_over
    return pieces.with_columns(
        is_short=(duration < MIN_COMPUTING_OPERATOR_NS).fill_null(value=False),
        ran_then=ran_then.fill_null(value=False),
        is_on_host=category.is_in(list(names.DEVICE_WORK_CATEGORIES)).not_().fill_null(value=False),
        is_needed=is_unclaimed & (pl.col("efficiency") >= least).fill_null(value=False),
        time=pl.col("end") - pl.col("start"),
        place=_place_numbers(pieces),
    )


def _with_lines_of_findings(pieces: pl.DataFrame, findings: tuple[Finding, ...]) -> pl.DataFrame:
    """Returns the pieces; of a function of which only the definition is known, with the line in it.

    That is the line of the finding that claims the piece, if it is in the same function.
    """
    schema: dict[str, Any] = {
        CLAIMED_SEGMENT_COLUMN: pieces.schema[CLAIMED_SEGMENT_COLUMN],
        **dict.fromkeys(("file", "function", "told_how"), pl.String),
        "told_line": pl.Int32,
    }
    told = pl.DataFrame(
        [
            (number, place.file, place.function, place.how, place.line)
            for number, place in enumerate(finding.where for finding in findings)
            if place.how in EVIDENCE_OF_LINE and place.line is not None
        ],
        schema,
        orient="row",
    )
    sites = pieces.with_columns(pl.col(SOURCE_SITE_COLUMNS).exclude("line").cast(pl.String))
    keys = [CLAIMED_SEGMENT_COLUMN, "file", "function"]
    joined = sites.join(told, on=keys, how="left", maintain_order="left")
    is_told = ~pl.col("how").is_in(EVIDENCE_OF_LINE) & pl.col("told_line").is_not_null()
    return joined.with_columns(
        pl.when(is_told).then(f"told_{name}").otherwise(name).alias(name)
        for name in ("line", "how")
    ).drop("told_line", "told_how")


def _place_numbers(pieces: pl.DataFrame) -> pl.Series:
    """Returns a number that tells rows apart: by the source line, else the name of what ran.

    An optimizer's step is apart from other work at its line. Without lines, the many operators that
    a finding claims are one row, but for those that take much of it.
    """
    is_optimizer = matches_name(pieces.select(name="what"), names.is_optimizer_step)
    at_line = pl.col("file").is_not_null()
    time = (pl.col("end") - pl.col("start")).sum()
    of_finding = ("class", CLAIMED_SEGMENT_COLUMN)
    least = MIN_SHARE_OF_NAMED_FINDING_ROW * time.over(of_finding)
    is_named = pl.col(CLAIMED_SEGMENT_COLUMN).is_null() | (time.over(*of_finding, "what") >= least)
    has_name = pl.when(at_line).then(pl.Series(is_optimizer)).otherwise(is_named)
    places = pieces.select(
        "file", line=pl.when(at_line).then("line"), name=pl.when(has_name).then("what")
    )
    return pl.Series(equal_row_group_numbers(places))


def _rows_of_pieces(pieces: pl.DataFrame) -> pl.DataFrame:
    """Returns a row for each class, place, finding and kind of work, with its time.

    A name stands for a row if it has at least half of its time.
    """
    named = pieces.group_by(*_ROW_KEYS, "what").agg(pl.col("step_time").sum())
    named = named.with_columns(pl.col("what").cast(pl.String))
    has_most = pl.col("step_time") * 2 >= pl.col("step_time").sum().over(_ROW_KEYS)
    largest = named.sort("step_time", "what", descending=[True, False], nulls_last=True)
    largest = largest.filter(has_most).unique(_ROW_KEYS, keep="first", maintain_order=True)
    known = pl.col("efficiency").is_not_null()
    weight = pl.col("step_time").filter(known).sum()
    rows = pieces.group_by(_ROW_KEYS, maintain_order=True).agg(
        pl.col("step_time").sum(),
        *(common_value_expression(name) for name in ("file", "line", "function")),
        # A line that ran is one, though other time of the row has it from a definition.
        how=pl.col("how").filter(pl.col("how").is_in(EVIDENCE_OF_LINE)).first(),
        efficiency=(pl.col("efficiency") * pl.col("step_time")).sum() / weight,
        known_time=weight,
        by_memory=(pl.col("by_memory") * pl.col("step_time")).sum() * 2 > weight,
        in_products=(pl.col("in_products") * pl.col("step_time")).sum() * 2 > weight,
        first=pl.col("start").min(),
        pieces=pl.col("slice").filter("is_on_host").n_unique(),
        median_ns=pl.col("time").filter("is_on_host").median(),
        short_share=pl.col("time").filter(pl.col("is_on_host") & pl.col("is_short")).sum()
        / pl.col("time").sum(),
        slices=pl.col("slice").filter("ran_then"),
        starts=pl.col("start").filter(~pl.col("ran_then")),
        ends=pl.col("end").filter(~pl.col("ran_then")),
        **{name: _mean_over_time(name) for name in ("flops_rate", "bytes_rate")},
    )
    # A mean tells nothing of work that is mostly not modelled.
    told = pl.when(pl.col("known_time") * 2 > pl.col("step_time")).then("efficiency")
    return rows.with_columns(efficiency=told).join(
        largest.select(*_ROW_KEYS, "what"), on=_ROW_KEYS, how="left", nulls_equal=True
    )


def _mean_over_time(rate: str) -> pl.Expr:
    """Returns the mean of a rate over all time of a row; null where no piece of it has one."""
    amount = (pl.col(rate) * pl.col("step_time")).sum() / pl.col("step_time").sum()
    return pl.when(pl.col(rate).is_not_null().any()).then(amount)


def _with_merged_small_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows; those of a class that are small become one.

    Those of a finding stay with it, and its largest stays alone. Columns are added: places, the
    number of rows that became one; is_small, whether they are small even together.
    """
    whole = float(rows["step_time"].sum())
    largest_of_finding = pl.col("step_time").max().over(CLAIMED_SEGMENT_COLUMN)
    is_kept = pl.col(CLAIMED_SEGMENT_COLUMN).is_not_null() & (
        pl.col("step_time") == largest_of_finding
    )
    is_short = (pl.col("step_time") < MIN_ROW_SHARE * whole) & ~is_kept
    alone = rows.filter(~is_short).with_columns(
        places=pl.lit(1, pl.UInt32), is_small=pl.lit(value=False)
    )
    order = rows.filter(is_short).sort("step_time", "first", descending=[True, False])
    of_first = ("what", *SOURCE_SITE_COLUMNS, *_WORK_COLUMNS)
    merged = order.group_by(_MERGED_ROW_KEYS, maintain_order=True).agg(
        *(
            (pl.col(name) * pl.col("step_time")).sum() / pl.col("step_time").sum()
            for name in _MEAN_WORK_COLUMNS
        ),
        pl.col("step_time").sum(),
        pl.col(*of_first).first(),
        pl.col("first").min(),
        pl.col("pieces").sum(),
        pl.col("slices", "starts", "ends").list.explode(),
        places=pl.len().cast(pl.UInt32),
    )
    is_small = pl.col("step_time") < MIN_ROW_SHARE * whole
    merged = merged.with_columns(is_small=is_small)
    return pl.concat([alone, merged], how="diagonal").sort(
        "step_time", "first", descending=[True, False]
    )


def _account_rows(
    unexplained: UnexplainedTime, table: pl.DataFrame, steps: int, findings: tuple[Finding, ...]
) -> tuple[AccountRow, ...]:
    """Returns the rows with their times as ns, rounded so that they add up exactly."""
    ends = [round(end) for end in table["step_time"].cum_sum().to_list()]
    times_ns = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
    table = table.with_columns(
        per_step=pl.col("pieces") / steps, slices=pl.col("slices").list.unique().list.sort()
    )
    rows = zip(table.iter_rows(named=True), times_ns, strict=True)
    return tuple(
        _account_row(unexplained, row, time_ns, time_ns / max(ends[-1], 1), findings)
        for row, time_ns in rows
        if time_ns
    )


def _account_row(
    unexplained: UnexplainedTime,
    row: dict[str, Any],
    time_ns: int,
    share: float,
    findings: tuple[Finding, ...],
) -> AccountRow:
    ms, time_class = time_ns / 1e6, row["class"]
    number, efficiency, on_device = row[CLAIMED_SEGMENT_COLUMN], row["efficiency"], row["on_device"]
    where, what = where_from_row(row), row["what"] and names.without_object_address(row["what"])
    places, finding_id = row["places"], None
    at_most_ms = _at_most_ms(unexplained, row, ms)
    verdict: AccountVerdict = "unexplained"
    if number is not None:
        finding = findings[number]
        verdict, finding_id, text = "finding", finding.id or finding.rule, finding.title
        where = where if where.file is not None else finding.where
        upper = finding.saving.upper_ms
        at_most_ms = ms if upper is None else min(ms, upper)
    elif row["is_small"]:
        verdict, text = "small", small_sentence(MIN_ROW_SHARE)
    elif row["is_needed"]:
        verdict = "needed"
        peaks = unexplained.cpu_peaks
        text = needed_sentence(efficiency, peaks, by_memory=row["by_memory"], on_device=on_device)
    elif time_class == "device_wait" and what is None and where.file is None and places == 1:
        text = WAIT_FOR_EARLIER_WORK_SENTENCE
    else:
        operators = _operators_of_row(row)
        text = unexplained.sentence(time_class, what, efficiency, operators, on_device=on_device)
    if places > 1:
        where, what = Where(), None
    callers = callers_of_place(unexplained.trace, where)
    return AccountRow(
        time_class=time_class,
        ms=ms,
        share=share,
        where=where,
        called_at=Where() if callers is None else callers.most,
        what=what,
        places=places,
        computes_on_host=time_class == "compute" and not on_device and unexplained.has_device_work,
        verdict=verdict,
        finding=finding_id,
        at_most_ms=at_most_ms,
        text=text,
        slices=np.asarray(row["slices"], np.int64),
        stretches=union(row["starts"], row["ends"]),
    )


def _at_most_ms(unexplained: UnexplainedTime, row: dict[str, Any], ms: float) -> float:
    """Returns the most of a row's time that a fix could save without a finding that bounds it.

    No time of a step is in two rows, so it is all of the row's; of computing at a known share of
    the machine's peak it is what the rest of the share takes.
    """
    efficiency: float | None = row["efficiency"]
    has_peak = row["on_device"] or unexplained.cpu_peaks is not None
    if row["class"] != "compute" or row["is_small"] or efficiency is None or not has_peak:
        return ms
    return ms * (1.0 - min(efficiency, 1.0))


def _operators_of_row(row: dict[str, Any]) -> OperatorsOfRow:
    return OperatorsOfRow(
        row["per_step"],
        row["median_ns"] or 0.0,
        row["short_share"],
        flops_per_ns=row["flops_rate"],
        bytes_per_ns=row["bytes_rate"],
        are_by_memory=row["by_memory"],
        are_products=row["in_products"],
        places=row["places"],
    )


def _ms_with_verdict(rows: tuple[AccountRow, ...], verdict: AccountVerdict) -> float:
    return time_of_rows_ms(tuple(row for row in rows if row.verdict == verdict))
