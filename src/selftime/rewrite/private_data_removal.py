"""Replaces private data in a trace's text: folders, hosts, users, commands, URLs, secrets.

Each private text becomes a word for its kind and a hash: equal texts get equal words within a file,
so that its structure stays, but different ones in other files, since the hash has a random salt.
Numbers, times and layout stay as they are written. Users and hosts are collected in a first pass,
and hidden everywhere in the second.
"""

import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec import Raw

from selftime import names
from selftime.ingest.text.json_strings import distinct_json_strings, json_string_replacer
from selftime.ingest.text.trace_text_stream import TraceTextReceiver
from selftime.names import is_private_key, public_names
from selftime.names.private_data import Match, Pattern
from selftime.rewrite.user_names import UserNames

_REPLACEMENT_PREFIX_BY_PRIVATE_KIND: Final = {"folder": "dir", "function": "fn"}
_FACTS_KEY: Final = "selftime"
"""Top-level key of what selftime's recorder adds to a trace."""
_CELL_TEXT: Final = "text of a notebook's cell"
"""Kind of private text that is removed whole; no word stands for it."""
_HASH_DIGITS_IN_REPLACEMENT: Final = 8
_KEYS_OF_NAMES: Final = frozenset({"name", "labels", "cat"})
"""Keys of events with names of what is recorded."""
_KEYS_OF_IDS: Final = frozenset({"pid", "tid"})
_JSON_VALUE_DECODER: Final = msgspec.json.Decoder(Any, float_hook=lambda text: Raw(text.encode()))
_WORDS_IN_KEYS_OF_DEVICE_IDENTITIES: Final = ("pci", "serial", "uuid")


@dataclass(slots=True)
class PrivateWordCollector:
    """Reads a trace's top-level keys and events, and collects the user and host names in them."""

    found: dict[str, str] = field(default_factory=dict)
    """Maps each collected name to its kind, `user` or `host`."""
    user_names: UserNames | None = None
    """Collects the names that the user gave to events, if they are to be hidden."""

    def receive_key(self, name: str, value: bytes) -> None:
        """Collects the names of users and hosts from a top-level key and its JSON value."""
        self._collect_from_json(b"{%b:%b}" % (msgspec.json.encode(name), value))

    def receive_events(self, text: bytes, _count: int) -> None:
        """Collects the names of users and hosts from the JSON text of events."""
        self._collect_from_json(text)
        if self.user_names is not None:
            self.user_names.receive_events(text)

    def _collect_from_json(self, text: bytes) -> None:
        for key, string in distinct_json_strings(text):
            self.collect_users_and_hosts(key, string)

    def collect_users_and_hosts(self, key: str, text: str) -> None:
        """Collects the user and host names in the text value `text` of the JSON key `key`."""
        for kind, word in names.find_users_and_hosts(key, text):
            self.found.setdefault(word, kind)


@dataclass(slots=True)
class PrivateTextReplacements:
    """Maps private texts to replacements, equal texts to equal ones, and counts the texts."""

    keep: Sequence[Pattern] = ()
    """Patterns of texts that are not replaced."""
    salt: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    counts: Counter[str] = field(default_factory=Counter)
    """Number of distinct texts that were replaced, by kind of text, such as `user`."""
    _given: dict[tuple[str, str], str] = field(default_factory=dict)
    _words: set[str] = field(default_factory=set)

    def __call__(self, kind: str, text: str) -> str:
        """Returns the replacement for a private text; returns a replacement unchanged."""
        bare = text.strip("/\\")
        if bare in self._words or any(pattern.search(text) for pattern in self.keep):
            return bare if bare in self._words else text
        word = self._given.get((kind, bare))
        if word is None:
            digest = blake2b(bare.encode("utf-8", "replace"), key=self.salt).hexdigest()
            kind_word = _REPLACEMENT_PREFIX_BY_PRIVATE_KIND.get(kind, kind.replace(" ", "_"))
            word = f"{kind_word}-{digest[:_HASH_DIGITS_IN_REPLACEMENT]}"
            self._given[kind, bare] = word
            self._words.add(word)
            self.counts[kind] += 1
        return word


class Redactor:
    """Reads a trace's top-level keys and events, and writes them with private data replaced.

    Args:
        target: The receiver of the text; None if only values are processed.
        hidden: Returns the replacement of each private text.
        words: Users and hosts, with their kind.
        replace: Patterns of further private texts.
        hides_names: Whether all names that the user gave are private.
    """

    def __init__(
        self,
        target: TraceTextReceiver | None,
        hidden: PrivateTextReplacements,
        words: PrivateWordCollector,
        *,
        replace: Sequence[Pattern] = (),
        hides_names: bool = False,
    ) -> None:
        self.target, self.hidden, self.words = target, hidden, words.found
        self._kinds = {word.lower(): kind for word, kind in words.found.items()}
        self._word = names.pattern_of_words(words.found)
        self._replace, self._hides_names = replace, hides_names
        user_names = words.user_names or UserNames()
        self._names = user_names.private
        self._categories = dict.fromkeys(user_names.private_categories, "category")
        self._redact_json = json_string_replacer(self._redacted_event_text)

    def receive_events(self, text: bytes, count: int) -> None:
        """Writes the given JSON events with private data replaced."""
        self._required_target().receive_events(self._redact_json(text), count)

    def receive_key(self, name: str, value: bytes) -> None:
        """Writes a top-level key with the private data in its JSON value replaced."""
        is_added = self._hides_names and name not in public_names.FILE_KEYS
        decoded = _JSON_VALUE_DECODER.decode(value)
        if name == _FACTS_KEY:
            decoded = self._without_text_of_cells(decoded)
        changed = self._redacted_json_value(name, decoded, is_private=is_added)
        written = self.hidden("key", name) if is_added else self._redacted_text("", name)
        self._required_target().receive_key(written, msgspec.json.encode(changed))

    def _without_text_of_cells(self, facts: Any) -> Any:
        """Returns the recorder's facts without the source text of a notebook's cells."""
        cells = facts.get("cells") if isinstance(facts, dict) else None
        if not isinstance(cells, dict) or "text" not in cells:
            return facts
        texts = cells["text"] if isinstance(cells["text"], list) else [cells["text"]]
        self.hidden.counts[_CELL_TEXT] += sum(text is not None for text in texts)
        return {**facts, "cells": {**cells, "text": [None] * len(texts)}}

    def _required_target(self) -> TraceTextReceiver:
        assert self.target is not None, "parts of text need a target"  # noqa: S101 - a fault of ours
        return self.target

    def _redacted_json_value(self, key: str, value: Any, *, is_private: bool) -> Any:
        """Returns a JSON value with private texts replaced; with all texts if `is_private`."""
        is_private = is_private or names.is_private_key(key)
        if isinstance(value, dict):
            return {
                self._redacted_key(name, is_private=is_private): self._redacted_json_value(
                    name, one, is_private=is_private
                )
                for name, one in value.items()
            }
        if isinstance(value, list):
            return [self._redacted_json_value(key, one, is_private=is_private) for one in value]
        return self.redacted_value(key, value, is_private=is_private)

    @staticmethod
    def is_private_key(key: str) -> bool:
        """Returns whether all texts in the value of a JSON key are private."""
        return names.is_private_key(key)

    def redacted_value(self, key: str, value: Any, *, is_private: bool) -> Any:
        """Returns the replacement of a private text or number; returns other values unchanged."""
        if isinstance(value, str):
            if is_private and not names.is_harmless_value(value):
                return self.hidden(key.lower() if is_private_key(key) else "text", value)
            fact = self._redacted_fact(key, value) if self._hides_names else None
            return self._redacted_text(key, value) if fact is None else fact
        if type(value) is int and any(
            word in key.lower() for word in _WORDS_IN_KEYS_OF_DEVICE_IDENTITIES
        ):
            return 0
        return value

    def _redacted_key(self, name: str, *, is_private: bool) -> str:
        """Returns a key within a value; one within what the user added is hidden with its value."""
        is_added = self._hides_names and is_private and not names.is_harmless_value(name)
        return self.hidden("key", name) if is_added else self._redacted_text("", name)

    def _redacted_event_text(self, key: str, text: str) -> str:
        """Returns a string of an event, or one of its keys (`key` is empty), without private parts.

        If names are hidden, keys and texts of arguments that no recorder writes are, too.
        """
        if not self._hides_names or names.is_harmless_value(text):
            return self._redacted_text(key, text)
        kind = self._names.get(text) if key != "cat" else self._categories.get(text)
        if kind is not None and key in _KEYS_OF_NAMES:
            what, before, private, after = public_names.private_part(text)
            return before + self.hidden(kind if what == "name" else what, private) + after
        is_added = (
            key not in public_names.EVENT_KEYS if key else text not in public_names.EVENT_KEYS
        )
        if is_added:
            return self.hidden("text" if key else "key", text)
        if key in _KEYS_OF_IDS and not public_names.is_public_label(text):
            return self.hidden("label", text)
        if key and key not in public_names.TEXT_KEYS | _KEYS_OF_IDS and not is_private_key(key):
            return self.hidden("text", text)
        return self._redacted_text(key, text)

    def redacted_names(self, texts: Iterable[str]) -> list[str]:
        """Returns texts as they stand in the redacted file, sorted."""
        return sorted({self._redacted_event_text("name", text) for text in texts})

    def _redacted_fact(self, key: str, text: str) -> str | None:
        """Returns a name or file in selftime's facts without what is private; None if no such."""
        if key in public_names.FACT_KEYS_OF_FILES:
            frame = names.redact_text("", f"{text}(1): f", self.hidden, hides_names=True)
            return frame.rpartition("(1): ")[0]
        kind = public_names.FACT_KEYS_OF_NAMES.get(key)
        if kind is None or public_names.is_public_class(text):
            return None
        return self.hidden(kind, text)

    def _redacted_text(self, key: str, text: str) -> str:
        for pattern in self._replace:
            text = pattern.sub(lambda found: self.hidden("pattern", found[0]), text)
        text = names.redact_text(key, text, self.hidden, hides_names=self._hides_names)
        if self._word is not None:
            text = self._word.sub(self._replace_word, text)
        return text

    def _replace_word(self, match: Match) -> str:
        return self.hidden(self._kinds.get(match[0].lower(), "user"), match[0].lower())
