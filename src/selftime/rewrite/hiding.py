"""Rewrite a file's text without private data: folders, hosts, users, commands, URLs, secrets.

Each private text becomes a word for its kind and a hash: equal texts get equal words within a file,
so that its structure stays, but different ones in other files, since the hash has a random salt.
Numbers, times and layout stay as they are written. Users and hosts are collected in a first pass,
and hidden everywhere in the second.
"""

import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec import Raw

from selftime import names
from selftime.ingest.text.parts import TextReceiver
from selftime.ingest.text.strings import distinct_strings, string_replacer
from selftime.names.private_data import Match, Pattern

_WORDS: Final = {"folder": "dir", "function": "fn"}
_DIGITS: Final = 8
_VALUES: Final = msgspec.json.Decoder(Any, float_hook=lambda text: Raw(text.encode()))
_IDENTITY: Final = ("pci", "serial", "uuid")


@dataclass(slots=True)
class PrivateWords:
    """Receives a file's parts and collects the users and hosts that they name."""

    found: dict[str, str] = field(default_factory=dict)
    """The kind, user or host, of each word."""

    def key(self, name: str, value: bytes) -> None:
        """Collect from a top-level key and its value."""
        self._read(b"{%b:%b}" % (msgspec.json.encode(name), value))

    def events(self, text: bytes, _count: int) -> None:
        """Collect from events."""
        self._read(text)

    def _read(self, text: bytes) -> None:
        for key, string in distinct_strings(text):
            self.collect(key, string)

    def collect(self, key: str, text: str) -> None:
        """Collect users and hosts from a text with this key."""
        for kind, word in names.users_and_hosts(key, text):
            self.found.setdefault(word, kind)


@dataclass(slots=True)
class Replacements:
    """Returns the replacement of private texts, and counts them."""

    keep: Sequence[Pattern] = ()
    """Texts that match one of these patterns stay."""
    salt: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    counts: Counter[str] = field(default_factory=Counter)
    """The number of distinct texts that were replaced, by kind."""
    _given: dict[tuple[str, str], str] = field(default_factory=dict)
    _words: set[str] = field(default_factory=set)

    def __call__(self, kind: str, text: str) -> str:
        """Returns the replacement of a text; a replacement stays as it is."""
        bare = text.strip("/\\")
        if bare in self._words or any(pattern.search(text) for pattern in self.keep):
            return bare if bare in self._words else text
        word = self._given.get((kind, bare))
        if word is None:
            digest = blake2b(bare.encode("utf-8", "replace"), key=self.salt).hexdigest()
            word = f"{_WORDS.get(kind, kind.replace(' ', '_'))}-{digest[:_DIGITS]}"
            self._given[kind, bare] = word
            self._words.add(word)
            self.counts[kind] += 1
        return word


class Redactor:
    """Receives a file's parts and passes them on without private data.

    Args:
        target: The receiver of the text; None if only values are processed.
        hidden: Returns replacements.
        words: Users and hosts, with their kind.
        replace: Patterns of further private texts.
        hides_names: Whether names of the user's own files and functions are private.
    """

    def __init__(
        self,
        target: TextReceiver | None,
        hidden: Replacements,
        words: PrivateWords,
        *,
        replace: Sequence[Pattern] = (),
        hides_names: bool = False,
    ) -> None:
        self.target, self.hidden, self.words = target, hidden, words.found
        self._kinds = {word.lower(): kind for word, kind in words.found.items()}
        self._word = names.words_pattern(words.found)
        self._replace, self._hides_names = replace, hides_names
        self._in_text = string_replacer(self._changed)

    def events(self, text: bytes, count: int) -> None:
        """Pass on events without private data."""
        self._to().events(self._in_text(text), count)

    def key(self, name: str, value: bytes) -> None:
        """Pass on a top-level key and its value without private data."""
        changed = self._value(name, _VALUES.decode(value), is_private=False)
        self._to().key(self._changed("", name), msgspec.json.encode(changed))

    def _to(self) -> TextReceiver:
        assert self.target is not None, "parts of text need a target"  # noqa: S101 - a fault of ours
        return self.target

    def _value(self, key: str, value: Any, *, is_private: bool) -> Any:
        """Returns a value with its texts replaced; all texts below a private key are private."""
        is_private = is_private or names.is_private_key(key)
        if isinstance(value, dict):
            return {
                self._changed("", name): self._value(name, one, is_private=is_private)
                for name, one in value.items()
            }
        if isinstance(value, list):
            return [self._value(key, one, is_private=is_private) for one in value]
        return self.redacted_value(key, value, is_private=is_private)

    @staticmethod
    def is_private_key(key: str) -> bool:
        """Returns whether all texts below a key are private."""
        return names.is_private_key(key)

    def redacted_value(self, key: str, value: Any, *, is_private: bool) -> Any:
        """Returns a text or number with its replacement if it is private."""
        if isinstance(value, str):
            if is_private and not names.is_harmless_value(value):
                return self.hidden(key.lower(), value)
            return self._changed(key, value)
        if type(value) is int and any(word in key.lower() for word in _IDENTITY):
            return 0
        return value

    def _changed(self, key: str, text: str) -> str:
        for pattern in self._replace:
            text = pattern.sub(lambda found: self.hidden("pattern", found[0]), text)
        text = names.redact(key, text, self.hidden, hides_names=self._hides_names)
        if self._word is not None:
            text = self._word.sub(self._replace_word, text)
        return text

    def _replace_word(self, found: Match) -> str:
        return self.hidden(self._kinds.get(found[0].lower(), "user"), found[0].lower())
