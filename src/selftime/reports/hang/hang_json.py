"""Writes why a job hangs in the JSON form `selftime.hang/1` (docs/formats.md)."""

import json
from typing import Any, Final

from selftime.analysis.hang import Difference, Hang, RankState, Variant
from selftime.flight_recorder import Call, LastSighting, Place
from selftime.reports.hang.sentences import HangSentences

FORMAT: Final = "selftime.hang/1"


def as_json(found: Hang) -> str:
    """Returns the judgement on a job as JSON; the same files give the same text."""
    sentences = HangSentences(found)
    evidence = found.evidence
    document = {
        "format": FORMAT,
        "verdict": {"kind": found.verdict.value, "text": sentences.verdict()},
        "until_ns": found.until_ns or None,
        "causes": [_difference(one, sentences) for one in found.causes],
        "consequences": [_difference(one, sentences) for one in found.consequences],
        "remarks": [_difference(one, sentences) for one in found.remarks],
        "ranks": [_rank(state, found) for state in found.ranks],
        "groups": [
            {
                "name": group.name,
                "description": group.description or None,
                "ranks": list(group.ranks),
                "are_ranks_stated": group.are_ranks_stated,
            }
            for group in found.groups
        ],
        "older_dumps": list(found.older),
        "unread": [{"path": path, "reason": reason} for path, reason in evidence.unread],
        "superseded": [{"rank": rank, "path": path} for rank, path in evidence.superseded],
        "other_files": evidence.other_files,
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _difference(one: Difference, sentences: HangSentences) -> dict[str, Any]:
    return {
        "kind": one.kind.value,
        "text": sentences.difference(one),
        "group": one.group.name,
        "operation": one.operation,
        "sequence": one.sequence,
        "ranks": list(one.ranks),
        "waiting": list(one.waiting),
        "entered": list(one.entered),
        "since_ns": one.since_ns,
        "timeout_ns": one.timeout_ns,
        "later": one.later,
        "variants": [_variant(variant) for variant in one.variants],
    }


def _variant(variant: Variant) -> dict[str, Any]:
    return {"ranks": list(variant.ranks), "call": _call(variant.call)}


def _rank(state: RankState, found: Hang) -> dict[str, Any]:
    dump = found.evidence.dumps.get(state.rank)
    return {
        "rank": state.rank,
        "dump": None if dump is None else dump.source,
        "version": None if dump is None else dump.version,
        "calls": None if dump is None else len(dump.calls),
        "lost_calls": None if dump is None else dump.lost_calls,
        "unread_entries": None if dump is None else dump.unread_entries,
        "last_ended": _call(state.last_ended),
        "open_call": _call(state.open_call),
        "last_call": _call(state.last_call),
        "seen": _sighting(state.seen),
    }


def _call(call: Call | None) -> dict[str, Any] | None:
    if call is None:
        return None
    return {
        "group": call.group,
        "operation": call.operation,
        "sequence": call.sequence,
        "state": call.state.value,
        "is_point_to_point": call.is_point_to_point,
        "input_sizes": [list(shape) for shape in call.input_sizes],
        "output_sizes": [list(shape) for shape in call.output_sizes],
        "input_dtypes": list(call.input_dtypes),
        "output_dtypes": list(call.output_dtypes),
        "created_ns": call.created_ns,
        "started_ns": call.started_ns,
        "completed_ns": call.completed_ns,
        "timeout_ns": call.timeout_ns,
        "where": _place(call.place),
    }


def _place(place: Place | None) -> dict[str, Any] | None:
    return None if place is None else dict(place._asdict())


def _sighting(seen: LastSighting | None) -> dict[str, Any] | None:
    if seen is None:
        return None
    return {
        "ledger": seen.source,
        "part": seen.part,
        "where": _place(seen.place),
        "standing_ns": seen.standing_ns,
        "seen_ns": seen.seen_ns,
        "last_ns": seen.last_ns,
        "status": seen.status,
    }
