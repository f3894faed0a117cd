"""A file's text without what is private: folders, hosts, users, commands, addresses, secrets.

Each private text becomes a word of its kind and a hash of it: equal texts have equal words within a
file, so that its structure stays, and others in the next, for the hash is salted anew. Numbers,
times and layout stay as they are written. Users and hosts are found in a first reading, and hidden
wherever they stand in the second.
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
from selftime.ingest.text.parts import TextParts
from selftime.ingest.text.strings import distinct_strings, with_strings
from selftime.names.private_data import Match, Pattern

_WORDS: Final = {"folder": "dir", "function": "fn"}
_DIGITS: Final = 8
_VALUES: Final = msgspec.json.Decoder(Any, float_hook=lambda text: Raw(text.encode()))
_IDENTITY: Final = ("pci", "serial", "uuid")


@dataclass(slots=True)
class PrivateWords:
    """Takes a file's parts and gathers the users and hosts that they name."""

    found: dict[str, str] = field(default_factory=dict)
    """Their kind, by the word."""

    def key(self, name: str, value: bytes) -> None:
        """A top-level key with its value."""
        self._read(b"{%b:%b}" % (msgspec.json.encode(name), value))

    def events(self, text: bytes, _count: int) -> None:
        """Some events."""
        self._read(text)

    def _read(self, text: bytes) -> None:
        for key, string in distinct_strings(text):
            self.look(key, string)

    def look(self, key: str, text: str) -> None:
        """Gather from a text that stands under a key."""
        for kind, word in names.homes_and_hosts(key, text):
            self.found.setdefault(word, kind)


@dataclass(slots=True)
class Hidden:
    """Gives what stands instead of private texts, and counts them."""

    keep: Sequence[Pattern] = ()
    """What they find stays."""
    salt: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    counts: Counter[str] = field(default_factory=Counter)
    """How many different texts were replaced, by kind."""
    _given: dict[tuple[str, str], str] = field(default_factory=dict)
    _words: set[str] = field(default_factory=set)

    def __call__(self, kind: str, text: str) -> str:
        """The word instead of a text; one that is such a word already stays."""
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


class Hiding:
    """Takes a file's parts and hands them on without what is private.

    Args:
        target: What takes them; None where nothing is read as text.
        hidden: What stands instead.
        words: Users and hosts, with their kind.
        replace: What they find is private, too.
        hides_names: Whether names of the user's own files and functions are.
    """

    def __init__(
        self,
        target: TextParts | None,
        hidden: Hidden,
        words: PrivateWords,
        *,
        replace: Sequence[Pattern] = (),
        hides_names: bool = False,
    ) -> None:
        self.target, self.hidden, self.words = target, hidden, words.found
        self._kinds = {word.lower(): kind for word, kind in words.found.items()}
        self._word = names.words_pattern(words.found)
        self._replace, self._hides_names = replace, hides_names
        self._in_text = with_strings(self._changed)

    def events(self, text: bytes, count: int) -> None:
        """Some events."""
        self._to().events(self._in_text(text), count)

    def key(self, name: str, value: bytes) -> None:
        """A top-level key with its value."""
        changed = self._value(name, _VALUES.decode(value), is_private=False)
        self._to().key(self._changed("", name), msgspec.json.encode(changed))

    def _to(self) -> TextParts:
        assert self.target is not None, "who hands on parts of text gives a target"  # noqa: S101 - a fault of ours
        return self.target

    def _value(self, key: str, value: Any, *, is_private: bool) -> Any:
        """A value of any kind; all texts below a private key are private."""
        is_private = is_private or names.is_private_key(key)
        if isinstance(value, dict):
            return {
                self._changed("", name): self._value(name, one, is_private=is_private)
                for name, one in value.items()
            }
        if isinstance(value, list):
            return [self._value(key, one, is_private=is_private) for one in value]
        return self.one(key, value, is_private=is_private)

    @staticmethod
    def is_private_key(key: str) -> bool:
        """Whether all texts below a key are private."""
        return names.is_private_key(key)

    def one(self, key: str, value: Any, *, is_private: bool) -> Any:
        """A text or a number that stands under a key, private or not."""
        if isinstance(value, str):
            if is_private and not names.is_plain(value):
                return self.hidden(key.lower(), value)
            return self._changed(key, value)
        if type(value) is int and any(word in key.lower() for word in _IDENTITY):
            return 0
        return value

    def _changed(self, key: str, text: str) -> str:
        for pattern in self._replace:
            text = pattern.sub(lambda found: self.hidden("pattern", found[0]), text)
        text = names.without_private(key, text, self.hidden, hides_names=self._hides_names)
        if self._word is not None:
            text = self._word.sub(self._named, text)
        return text

    def _named(self, found: Match) -> str:
        return self.hidden(self._kinds.get(found[0].lower(), "user"), found[0].lower())
