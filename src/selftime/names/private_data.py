r"""What in a text tells of a person, a machine or a place: found by its form, or by its key.

Nothing here can know that a word is private which has no such form: the name of a model, of a
function, of a company. Who shares a trace says such words himself.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from selftime.errors import UsageError
from selftime.names.frames import frame

Pattern = re.Pattern[str]
Match = re.Match[str]
Hide = Callable[[str, str], str]
"""Gives what stands instead of a private text: `hide(kind, text)`."""

_FILES: Final = (
    r"py[xc]?|ipynb|c|cc|cpp|cxx|cuh?|hp*|so|dll|jsonl?|gz|pth?|ckpt|bin|onnx|safetensors|np[yz]|txt"
    r"|md|ya?ml|toml|ini|cfg|sh|csv|tsv|parquet|log|html|xml|zip|tar"
)
_FORMS: Final = (
    ("address", r"(?<![A-Za-z0-9+.-])(?!file:)[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>()\[\]{};,]+"),
    ("e-mail", r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*"),
    (
        "secret",
        (
            r"(?i:(?<=password)|(?<=passwd)|(?<=secret)|(?<=token)|(?<=api_key)|(?<=apikey)"
            r"|(?<=api-key))[\"']?[ ]?[=:][ ]?[\"']?[^\s\"';,&]+"
        ),
    ),
    (
        "secret",
        (
            r"\b(?:hf_|gh[pousr]_|github_pat_|glpat-|sk-|xox[abprs]-|pypi-|npm_|AKIA|ASIA|AIza"
            r"|ya29\.|eyJ)[\w.+/=-]{12,}"
        ),
    ),
    ("id", r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"),
    ("id", r"\b(?:[0-9a-f]{32,}|[0-9A-F]{32,})\b"),
    ("PCI id", r"\b(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[01][0-9a-fA-F]\.[0-7]\b"),
    ("network address", r"(?<![\w:.])(?:[0-9A-Fa-f]{1,4}:){3,7}:?[0-9A-Fa-f]{1,4}(?![\w:])"),
    (
        "network address",
        r"(?i:(?<![\w:.])(?:fe80|f[cd][0-9a-f]{2}|[23][0-9a-f]{3})::?[0-9a-f:]+(?![\w:]))",
    ),
    (
        "network address",
        r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w.]*\d)",
    ),
)
_PATHS: Final = (
    r"(?<![\w\\])[A-Za-z]:[\\/][^\"'<>|;:*?\n]+",  # of Windows, with spaces
    r"\\\\[^\s\"'<>|;:*?]+",  # of a server of Windows
    r"(?:file://)?~?(?<![\w./)\]:-])(?:/[\w.@%+=~,-]+){2,}/?",
    r"~[\w.-]*/[\w.@%+=~,/-]+",
    r"(?<![\w./@%+=~-])(?:\.{0,2}/)?(?:[\w.@%+=~-]+/)+[\w.@%+=~-]+\.(?:" + _FILES + r")\b",
)
_FORM: Final = [(kind, re.compile(pattern)) for kind, pattern in _FORMS]
_PATH: Final = re.compile("|".join(f"(?:{pattern})" for pattern in _PATHS))
_ENTRY: Final = re.compile(r"[^;\n]+")
_LINE: Final = re.compile(r"\(\d+\): ")
_PUBLIC: Final = re.compile(
    r"(?:.*?[\\/])?((?:site|dist)-packages[\\/].*|lib[\\/]python\d[\d.]*[\\/].*|python\d\.\d+[\\/].*)"
)
"""The end of a path that is the same on every machine, which begins at an installed package."""
_COMPILED: Final = re.compile(r"torch(?:inductor|dynamo)")
_FILE: Final = re.compile(rf".+\.(?:{_FILES})")
_HOME: Final = re.compile(r"(?:/home/|/Users/|[A-Za-z]:[\\/]Users[\\/]|/torchinductor_)([\w.@-]+)")
_HOST: Final = re.compile(r"(?i:host_?name|host|node|node_?name|machine)")
_SHARED: Final = frozenset(
    {"root", "user", "users", "ubuntu", "runner", "public", "shared", "default"}
)
_LEAST: Final = 3
"""A shorter word is in too many others."""

_KEYS: Final = re.compile(
    r"(?i:host_?names?|host|node_?name|machine|user|user_?name|login|home|cwd|argv|args_?list|command"
    r"|cmd_?line|command_?line|paths|executable|trace_?name|trace_?id|job_?(?:name|id)|run_?name"
    r"|process group (?:name|description)|pg_(?:name|desc)|comms id|serial(?:_?number)?|.*uuid.*"
    r"|.*pci_?(?:bus|device|domain)?_?id.*|concrete inputs|environ(?:ment)?|env)"
)
"""Keys under which every text is private but for plain values."""
_PLAIN: Final = re.compile(
    r"(?i:[\d\s.,\[\](){}x:e+-]*|true|false|none|null|on|off|yes|no|default_pg|cuda(?::\d+)?|cpu"
    r"|gpu|mps|[a-z,. ]*->[a-z. ]*|float\d*|bfloat16|half|double|u?int\d*|bool|sum|mean|max|min"
    r"|zeros|reflect|constant|replicate|circular|bilinear|nearest|bicubic|floor|trunc|tanh)"
)
"""Values that tell nothing of anybody: numbers, switches, dtypes, modes of operators."""


def is_private_key(key: str) -> bool:
    """Whether what stands under a key is private whatever it looks like.

    >>> is_private_key("host_name"), is_private_key("Process Group Name"), is_private_key("name")
    (True, True, False)
    """
    return _KEYS.fullmatch(key) is not None


def is_plain(text: str) -> bool:
    """Whether a value tells nothing of anybody: a number, a switch, a dtype."""
    return _PLAIN.fullmatch(text) is not None


def pattern_of(text: str) -> Pattern:
    """A regular expression that a user gave.

    Raises:
        UsageError: It is none.
    """
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"`{text}` is no regular expression: {error}") from error


def words_pattern(words: Iterable[str]) -> Pattern | None:
    """What finds these words wherever they stand by themselves; None if none is worth it.

    >>> words_pattern({"jo", "jane"}).pattern
    '(?i)(?<![a-z0-9])(?:jane)(?![a-z0-9])'
    """
    long = {word for word in words if len(word) >= _LEAST and word.lower() not in _SHARED}
    if not long:
        return None
    either = "|".join(re.escape(word) for word in sorted(long, key=lambda w: (-len(w), w)))
    return re.compile(f"(?i)(?<![a-z0-9])(?:{either})(?![a-z0-9])")


def homes_and_hosts(key: str, text: str) -> Iterator[tuple[str, str]]:
    """Users and hosts that a text names, with their kind, to be hidden wherever they stand."""
    for found in _HOME.finditer(text):
        yield "user", found[1]
    if _HOST.fullmatch(key) and not _PLAIN.fullmatch(text):
        yield "host", text
        yield "host", text.partition(".")[0]


def without_private(key: str, text: str, hide: Hide, *, hides_names: bool = False) -> str:
    """A text of a trace without what is private by its form, or by its key.

    Args:
        key: The key that it stands under; empty for a key.
        text: The text, without escapes.
        hide: What gives the words to stand instead.
        hides_names: Whether names of the user's own files and functions are private, too.

    >>> without_private("name", "/data/jo/net.py(3): run", lambda kind, text: kind)
    '/folder/net.py(3): run'
    """
    if is_private_key(key):
        return text if _PLAIN.fullmatch(text) else hide(key.lower(), text)
    if "(" in text:
        text = _ENTRY.sub(lambda found: _frame(found[0], hide, hides_names), text)
    for kind, form in _FORM:
        text = _all_hidden(form, kind, text, hide)
    return _PATH.sub(lambda found: _path(found[0], hide, keeps_base=not hides_names), text)


def _all_hidden(form: Pattern, kind: str, text: str, hide: Hide) -> str:
    return form.sub(lambda found: hide(kind, found[0]), text)


def _frame(entry: str, hide: Hide, hides_names: bool) -> str:
    """An entry of a stack; of the user's own code also its names, if they are private."""
    found = _LINE.search(entry)
    if found is None:
        return entry
    file, line, function = entry[: found.start()], found[0], entry[found.end() :]
    told = frame(f"{file.strip()}{line}{function}")
    own = hides_names and told is not None and told.origin == "user"
    if not own:
        return _path(file, hide, keeps_base=True) + line + function
    return _path(file, hide, keeps_base=False) + line + hide("function", function)


def _path(path: str, hide: Hide, *, keeps_base: bool) -> str:
    """A path whose folders are one word; what belongs to an installed package stays."""
    separator = "\\" if "\\" in path and "/" not in path else "/"
    public = _PUBLIC.fullmatch(path)
    if public is not None:
        before = path[: public.start(1)]
        return (_folder(before, hide, separator) if before else "") + public[1]
    origin = frame(f"{path.strip()}(1): f")
    is_relative = not path.startswith(("/", "~", ".", "\\"))
    if origin is not None and origin.origin != "user" and is_relative:
        return path
    folder, cut, base = path.rpartition(separator)
    if cut and not _FILE.fullmatch(base):
        return _folder(path, hide, separator).rstrip(separator)
    told = _folder(folder + cut, hide, separator) if cut else ""
    return told + (base if keeps_base or not base else _base(base, hide))


def _folder(folder: str, hide: Hide, separator: str) -> str:
    """Folders as one, with the separators around; one of compiled code can still be told."""
    if folder in {separator, ""}:
        return folder
    begin = separator if folder.startswith(("/", "\\")) else ""
    bare = folder.rstrip("\\/")
    word = hide("folder", bare)
    if word == bare:
        return folder
    compiled = _COMPILED.search(folder)
    return f"{begin}{compiled[0] + '_' if compiled else ''}{word}{separator}"


def _base(base: str, hide: Hide) -> str:
    name, dot, suffix = base.rpartition(".")
    return f"{hide('file', name)}{dot}{suffix}" if dot else hide("file", base)
