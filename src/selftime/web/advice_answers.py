"""Computes the advice on the served traces, with the slices of its numbers, and keeps both."""

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Final, TypeAlias

import msgspec
import numpy as np

from selftime.advice import Advice, advise
from selftime.advice.number_slices import NumberKind
from selftime.array_types import Ints
from selftime.errors import UsageError
from selftime.intervals import Intervals
from selftime.reports.page_data.advice import advice_data, common_folder_of_findings
from selftime.reports.page_data.number_slices import DescribedNumber, described_numbers
from selftime.trace import Trace
from selftime.web.advice_sources import source_files_of_advice
from selftime.web.caches import AnswerStore, SharedCache
from selftime.web.jobs import IndexedJob, JobIndex
from selftime.web.readings import TraceKey

_MAX_ADVICE_CACHE_BYTES: Final = 16 << 20
"""Largest size of the cache of advice, in bytes."""
_MAX_NUMBER_CACHE_BYTES: Final = 128 << 20
"""Largest size of the cache of the slices of numbers, in bytes."""
_STORED_ADVICE, _STORED_NUMBERS = "advised", "numbers"

Numbers: TypeAlias = tuple[DescribedNumber, ...]
_Key: TypeAlias = tuple[str, str, str]


class AdviceAnswers:
    """The advice on each trace as JSON, and its numbers; on one rank of a job, of all its ranks."""

    def __init__(
        self,
        jobs: JobIndex,
        store: AnswerStore,
        open_trace: Callable[[TraceKey], Trace],
        store_after_s: float,
    ) -> None:
        self._jobs = jobs
        self._store = store
        self._open_trace = open_trace
        self._store_after_s = store_after_s
        self._advice: SharedCache[_Key, bytes] = SharedCache(_MAX_ADVICE_CACHE_BYTES, len)
        self._numbers: SharedCache[_Key, Numbers] = SharedCache(
            _MAX_NUMBER_CACHE_BYTES, lambda numbers: sum(one.memory_bytes for one in numbers)
        )

    def advice_json(self, key: TraceKey) -> bytes:
        """Returns the advice on a trace as JSON; computes it if it is not known."""
        job = self._jobs.job_of_several_traces(key[0])
        return self._advice.get(_cache_key(key, job), lambda: self._stored_or_computed(key, job))

    def numbers(self, key: TraceKey) -> Numbers:
        """Returns the numbers of the advice that stand for slices; computes it if not known."""
        job = self._jobs.job_of_several_traces(key[0])
        self.advice_json(key)  # mostly computes both
        return self._numbers.get(
            _cache_key(key, job),
            lambda: self._stored_numbers(key, job) or self._computed(key, job)[1],
        )

    def number(self, key: TraceKey, number_key: str) -> DescribedNumber:
        """Returns the number of the advice with a key.

        Raises:
            UsageError: The advice has no such number, or it stands for no slices.
        """
        found = (one for one in self.numbers(key) if one.key == number_key)
        if (number := next(found, None)) is None:
            raise UsageError(
                f"`of` is `{number_key[:60]}`, which is no finding and no row of this answer that "
                "stands for slices; follow a number of the panel Answer"
            )
        return number

    def known_numbers(self, key: TraceKey) -> Numbers | None:
        """Returns these numbers if the advice is in memory or on disk; else None, at once."""
        if not self._jobs.is_known(key[0]):
            return None
        job = self._jobs.job_of_several_traces(key[0])
        found = self._numbers.peek(_cache_key(key, job))
        if found is None:
            found = self._stored_numbers(key, job)
            if found is not None:
                self._numbers.put(_cache_key(key, job), found)
        return found

    def _stored_or_computed(self, key: TraceKey, job: IndexedJob | None) -> bytes:
        stored = self._find(_STORED_ADVICE, key, job)
        if stored is not None:
            return stored
        answer, numbers = self._computed(key, job)
        self._numbers.put(_cache_key(key, job), numbers)
        return answer

    def _computed(self, key: TraceKey, job: IndexedJob | None) -> tuple[bytes, Numbers]:
        """Returns the advice as JSON and its numbers; stores both if they took long."""
        trace = self._open_trace(key)
        started = perf_counter()
        advice = advise(trace, ranks=None if job is None else job.job.ranks)
        numbers = described_numbers(advice, common_folder_of_findings(advice))
        answer = msgspec.json.encode(advice_data(advice, numbers=numbers))
        if perf_counter() - started >= self._store_after_s and not trace.run.may_grow:
            self._keep(key, job, advice, answer, numbers)
        return answer, numbers

    def _keep(
        self,
        key: TraceKey,
        job: IndexedJob | None,
        advice: Advice,
        answer: bytes,
        numbers: Numbers,
    ) -> None:
        if not _has_fingerprints(key, job) or advice.trace is None:
            return
        files = source_files_of_advice(advice.trace, advice)
        for name, body in (
            (_STORED_ADVICE, answer),
            (_STORED_NUMBERS, encode_numbers(numbers)),
        ):
            self._store.store(body, name, *_stored_key(key, job), source_files=files)

    def _stored_numbers(self, key: TraceKey, job: IndexedJob | None) -> Numbers | None:
        stored = self._find(_STORED_NUMBERS, key, job)
        return None if stored is None else decode_numbers(stored)

    def _find(self, name: str, key: TraceKey, job: IndexedJob | None) -> bytes | None:
        """Returns what is stored on disk; None if it is missing or cannot be told apart."""
        if not _has_fingerprints(key, job):
            return None
        return self._store.find(name, *_stored_key(key, job))


def _cache_key(key: TraceKey, job: IndexedJob | None) -> _Key:
    return (*key, "" if job is None else job.key)


def _stored_key(key: TraceKey, job: IndexedJob | None) -> tuple[str, str, str]:
    return key[1], "" if job is None else job.fingerprint, str(Path.cwd())


def _has_fingerprints(key: TraceKey, job: IndexedJob | None) -> bool:
    return bool(key[1] and (job is None or job.fingerprint))


class _StoredNumber(msgspec.Struct, array_like=True):
    """A number on disk; ids and times are differences, as small integers take few bytes."""

    texts: tuple[str, NumberKind, str, str, str]
    answer: dict[str, str]
    are_examples: bool
    slices: list[int]
    starts: list[int]
    ends: list[int]


def encode_numbers(numbers: Numbers) -> bytes:
    """Returns numbers and their slices as bytes."""
    stored = [
        _StoredNumber(
            (one.key, one.kind, one.title, one.what, one.detail),
            dict(one.answer),
            one.are_examples,
            *map(_differences, (one.slices, *one.stretches)),
        )
        for one in numbers
    ]
    return msgspec.msgpack.encode(stored)


def decode_numbers(encoded: bytes) -> Numbers | None:
    """Returns what `encode_numbers` was given; None if the bytes are none of it."""
    try:
        stored = msgspec.msgpack.decode(encoded, type=list[_StoredNumber])
    except msgspec.DecodeError:
        return None
    return tuple(
        DescribedNumber(
            *one.texts,
            one.answer,
            one.are_examples,
            _sums(one.slices),
            Intervals(_sums(one.starts), _sums(one.ends)),
        )
        for one in stored
    )


def _differences(values: Ints) -> list[int]:
    differences: list[int] = np.diff(values, prepend=np.int64(0)).tolist()
    return differences


def _sums(differences: list[int]) -> Ints:
    return np.cumsum(np.asarray(differences, np.int64))
