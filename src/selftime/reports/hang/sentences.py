"""Says in sentences what differs between the ranks of a job that hangs, and what that means."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from selftime.analysis.hang import Difference, DifferenceKind, Hang, RankState, Variant, Verdict
from selftime.analysis.hang.call_comparison import elements
from selftime.flight_recorder import Call
from selftime.names.recorded_collectives import (
    SEND,
    exchanges_unevenly,
    is_end_of_coalesced_calls,
)
from selftime.reports.hang.phrases import (
    call_name,
    capitalised,
    group_text,
    joined,
    numbered_operation,
    place_text,
    ranks_text,
    variant_sizes_text,
    variant_types_text,
    waited_text,
)
from selftime.reports.plain import plain
from selftime.units import count_text, seconds_text, truncate_middle

_MOST_VARIANTS: Final = 4
"""Largest number of things that ranks did differently which a sentence names."""


@dataclass(frozen=True, slots=True)
class HangSentences:
    """Makes sentences on one hang; files below the folder `root` are named relative to it."""

    hang: Hang
    root: str | None = None

    def verdict(self) -> str:
        """Returns the verdict in one or two sentences, the first divergence first."""
        found = self.hang
        if found.verdict is Verdict.circle:
            return self._circle()
        if found.causes:
            return " ".join(self.difference(cause) for cause in found.causes)
        if not found.evidence.dumps:
            return self._without_dumps()
        calls = sum(len(dump.calls) for dump in found.evidence.dumps.values())
        ranks = ranks_text(found.evidence.dumps)
        lacking = [rank.rank for rank in found.ranks if not rank.has_dump]
        ended = f"all {count_text(calls)} recorded calls of {ranks} have ended"
        if lacking:
            return f"{capitalised(ranks_text(lacking))} left no dump, and {ended}."
        return f"No hang is shown: {ended}, and no rank is behind the others."

    def difference(self, one: Difference) -> str:
        """Returns what differs, as a sentence."""
        return _TEXT_BY_KIND[one.kind](self, one)

    def _waits(self, one: Difference) -> str:
        """Returns who waits and for how long, as `ranks 0-2 have waited for 61 s`."""
        if one.timeout_ns is not None:
            limit = f" of {seconds_text(one.timeout_ns)}" if one.timeout_ns else ""
            return f"{ranks_text(one.waiting)} waited until the timeout{limit}"
        waited = waited_text(one.since_ns, self.hang.until_ns, is_plural=len(one.waiting) > 1)
        return f"{ranks_text(one.waiting)} {waited}"

    def _waits_in(self, one: Difference) -> str:
        """Returns in which call ranks wait, behind its name: `in which ranks 0-2 have waited …`."""
        return f"in which {self._waits(one)}"

    def missing(self, one: Difference) -> str:
        ranks, name = ranks_text(one.ranks), f"{numbered_operation(one)} of {group_text(one)}"
        if one.is_open:
            told = f"{ranks} never entered {name}, {self._waits_in(one)}"
            return f"{capitalised(told)}; {self.standing(one.ranks)}."
        verb = "has" if len(one.ranks) == 1 else "have"
        return (
            f"{capitalised(ranks)} {verb} not entered {name}, which ended on "
            f"{ranks_text(one.entered)}: it failed there, or the dump of {ranks} was made before "
            f"those of others; {self.standing(one.ranks)}."
        )

    def no_dump(self, one: Difference) -> str:
        name = f"{numbered_operation(one)} of {group_text(one)}"
        pronoun = "it" if len(one.ranks) == 1 else "they"
        return (
            f"{capitalised(self._waits(one))} in {name}; {ranks_text(one.ranks)} left no dump that "
            f"tells whether {pronoun} entered it{self._seen_instead(one.ranks)}."
        )

    def _seen_instead(self, ranks: tuple[int, ...]) -> str:
        seen = any(state.is_seen_last for state in self.hang.ranks if state.rank in ranks)
        return f"; {self.standing(ranks)}" if seen else ""

    def operation(self, one: Difference) -> str:
        told = self._variants(one, lambda v: f"called {_operation_text(v)}")
        return f"As number {one.sequence} of {group_text(one)} {told}{self._and_wait(one)}."

    def order(self, one: Difference) -> str:
        told = self._variants(one, lambda v: f"called {_operation_text(v)} first")
        return (
            f"From number {one.sequence} of {group_text(one)} on the ranks called collectives in "
            f"different order: {told}{self._and_wait(one)}."
        )

    def skipped(self, one: Difference) -> str:
        name = f"{numbered_operation(one)} of {group_text(one)}"
        told = self._variants(one, lambda v: f"called {_operation_text(v)}")
        return (
            f"{capitalised(ranks_text(one.ranks))} left out {name}: under this number {told}"
            f"{self._and_wait(one)}."
        )

    def extra(self, one: Difference) -> str:
        told = self._variants(one, lambda v: f"called {_operation_text(v)}")
        return (
            f"{capitalised(ranks_text(one.ranks))} called a collective of {group_text(one)} that "
            f"the others did not: as number {one.sequence} {told}{self._and_wait(one)}."
        )

    def sizes(self, one: Difference) -> str:
        told = self._variants(one, lambda v: f"gave {variant_sizes_text(v)}")
        name = f"{numbered_operation(one)} of {group_text(one)}"
        return f"The sizes in {name} do not go together: {told}{self._and_wait(one)}."

    def impossible_sizes(self, one: Difference) -> str:
        told = self._variants(one, lambda v: f"gave {variant_sizes_text(v, has_both=True)}")
        name = f"{numbered_operation(one)} of {group_text(one)}"
        what = "The output does not fit the input"
        if exchanges_unevenly(one.operation):
            given = sum(len(v.ranks) * sum(elements(v.call.input_sizes)) for v in one.variants)
            made = sum(len(v.ranks) * sum(elements(v.call.output_sizes)) for v in one.variants)
            what = (
                f"All ranks together send {count_text(given)} elements and receive "
                f"{count_text(made)}"
            )
        return f"{what} in {name}: {told}{self._and_wait(one)}."

    def dtypes(self, one: Difference) -> str:
        told = self._variants(one, lambda v: f"gave {variant_types_text(v)}")
        name = f"{numbered_operation(one)} of {group_text(one)}"
        return f"The types in {name} do not go together: {told}{self._and_wait(one)}."

    def shapes(self, one: Difference) -> str:
        told = self._variants(one, lambda v: f"gave {variant_sizes_text(v)}")
        name = f"{numbered_operation(one)} of {group_text(one)}"
        return f"The shapes in {name} differ, with as many elements: {told}. No backend minds that."

    def lines(self, one: Difference) -> str:
        told = self._variants(one, lambda _: "called it")
        return (
            f"From {numbered_operation(one)} of {group_text(one)} on the ranks call from different "
            f"lines: {told}."
        )

    def unmatched(self, one: Difference) -> str:
        [call] = [variant.call for variant in one.variants]
        own, other = ("send", "receive") if one.operation == SEND else ("receive", "send")
        preposition = "from" if one.operation == SEND else "to"
        return (
            f"{capitalised(ranks_text(one.ranks))} never entered a {other} {preposition} "
            f"{ranks_text(one.waiting)} in {group_text(one)}: {self._waits(one)} in its {own}"
            f"{self._at(call)}; {self.standing(one.ranks)}."
        )

    def unfinished(self, one: Difference) -> str:
        name = f"{numbered_operation(one)} of {group_text(one)}"
        told = f"{_all_ranks_text(one)} entered {name} alike, and {self._waits(one)} in it"
        if len(one.ranks) == 1:
            return (
                f"{told}: the device of {ranks_text(one.ranks)} has not started it, and works on, "
                "or waits in, what it was given before."
            )
        if one.ranks:
            return (
                f"{told}: the devices of {ranks_text(one.ranks)} have not started it, and work on, "
                "or wait in, what they were given before."
            )
        return f"{told}: the calls do not tell why; a device, the network or a process stopped."

    def _and_wait(self, one: Difference) -> str:
        more = ""
        if one.later:
            verb = "one differs" if one.later == 1 else "ones differ"
            more = f" ({count_text(one.later)} later {verb} too)"
        return f"{more}; {self._waits(one)}" if one.is_open else f"{more}; none of them waits in it"

    def _at(self, call: Call) -> str:
        return "" if call.place is None else f" in {place_text(call.place, self.root)}"

    def _variants(self, one: Difference, what: Callable[[Variant], str]) -> str:
        """Returns what ranks did, and on which line: once, if it is the same of all."""
        places = {self._at(variant.call) for variant in one.variants}
        shared = places.pop() if len(places) == 1 else None
        texts = [
            f"{ranks_text(v.ranks)} {what(v)}{self._at(v.call) if shared is None else ''}"
            for v in one.variants[:_MOST_VARIANTS]
        ]
        left = one.variants[_MOST_VARIANTS:]
        if left:
            texts.append(f"{count_text(sum(len(v.ranks) for v in left))} ranks something else")
        told = ", ".join(texts)
        return f"{told}, all{shared}" if shared and len(texts) > 1 else f"{told}{shared or ''}"

    def standing(self, ranks: tuple[int, ...]) -> str:
        """Returns where ranks stand instead, as the end of a sentence: by a ledger, else a dump."""
        states = {state.rank: state for state in self.hang.ranks}
        by_text: dict[str, list[int]] = {}
        for rank in ranks:
            by_text.setdefault(self._standing_of_one(states[rank]), []).append(rank)
        texts = [f"{ranks_text(found)} {text}" for text, found in by_text.items()]
        return "; ".join(texts[:_MOST_VARIANTS])

    def _standing_of_one(self, state: RankState) -> str:
        end = ""
        if state.seen is not None and state.seen.status:
            end = f", and its process {plain(state.seen.status)}"
        return f"{self._place_of_one(state)}{end}"

    def _place_of_one(self, state: RankState) -> str:
        if state.seen is not None and state.is_seen_last:
            place = state.seen.place
            where = (
                "outside of the user's code"
                if place is None
                else f"in {place_text(place, self.root)}"
            )
            return f"was last seen {where}"
        if state.open_call is not None:
            label = self.group_label(state.open_call.group)
            return f"waits in {call_name(state.open_call)} of group {label}"
        if state.last_call is None:
            return "left no dump" if not state.has_dump else "made no call that its dump holds"
        place = state.last_call.place
        where = "" if place is None else f" in {place_text(place, self.root)}"
        return f"last called {call_name(state.last_call)}{where}"

    def group_label(self, name: str) -> str:
        """Returns what the program calls the group of this name."""
        labels = [group.label for group in self.hang.groups if group.name == name]
        return truncate_middle(plain(labels[0] if labels else name))

    def _circle(self) -> str:
        told = [
            f"{ranks_text(one.waiting)} in {numbered_operation(one)} of {group_text(one)} for "
            f"{ranks_text(one.ranks)}"
            for one in self.hang.causes
        ]
        return (
            f"Ranks wait for each other in a circle: {joined(told)}. They entered the groups' "
            "collectives in different order."
        )

    def _without_dumps(self) -> str:
        return (
            "No dump of the Flight Recorder is here, so that it is not known which collective is "
            f"open: {self.standing(tuple(self.hang.evidence.sightings))}."
        )


def _all_ranks_text(one: Difference) -> str:
    if any(variant.call.is_point_to_point for variant in one.variants):
        return "Both ranks"
    every = "All" if one.group.are_ranks_stated else "All known"
    return f"{every} {count_text(len(one.entered))} ranks"


def _operation_text(variant: Variant) -> str:
    if is_end_of_coalesced_calls(variant.call.operation):
        return "the end of calls made together"
    return truncate_middle(plain(variant.call.operation))


_TEXT_BY_KIND: Final[dict[DifferenceKind, Callable[[HangSentences, Difference], str]]] = {
    DifferenceKind.missing: HangSentences.missing,
    DifferenceKind.no_dump: HangSentences.no_dump,
    DifferenceKind.operation: HangSentences.operation,
    DifferenceKind.order: HangSentences.order,
    DifferenceKind.skipped: HangSentences.skipped,
    DifferenceKind.extra: HangSentences.extra,
    DifferenceKind.sizes: HangSentences.sizes,
    DifferenceKind.dtypes: HangSentences.dtypes,
    DifferenceKind.impossible_sizes: HangSentences.impossible_sizes,
    DifferenceKind.shapes: HangSentences.shapes,
    DifferenceKind.unmatched: HangSentences.unmatched,
    DifferenceKind.unfinished: HangSentences.unfinished,
    DifferenceKind.lines: HangSentences.lines,
}
