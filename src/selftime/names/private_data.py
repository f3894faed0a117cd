r"""Finds private data in text, such as names of users and hosts, or paths, by its form or its key.

Private words without such a form cannot be recognised: the name of a model, a function or a
company. A user who shares a trace names such words.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from selftime.errors import UsageError
from selftime.names.python_frames import parse_frame

Pattern = re.Pattern[str]
Match = re.Match[str]
HideFunction = Callable[[str, str], str]
"""Type of a function `hide(kind, text)` that returns the replacement for a private text."""

_FILE_SUFFIXES: Final = (
    r"py[xc]?|ipynb|c|cc|cpp|cxx|cuh?|hp*|so|dll|jsonl?|gz|pth?|ckpt|bin|onnx|safetensors|np[yz]|txt"
    r"|md|ya?ml|toml|ini|cfg|sh|csv|tsv|parquet|log|html|xml|zip|tar"
)
_SECRET_PATTERN_TEXTS: Final = (
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
_PATH_PATTERNS: Final = (
    r"(?<![\w\\])[A-Za-z]:[\\/][^\"'<>|;:*?\n]+",  # of Windows, with spaces
    r"\\\\[^\s\"'<>|;:*?]+",  # of a server of Windows
    r"(?:file://)?~?(?<![\w./)\]:-])(?:/[\w.@%+=~,-]+){2,}/?",
    r"~[\w.-]*/[\w.@%+=~,/-]+",
    r"(?<![\w./@%+=~-])(?:\.{0,2}/)?(?:[\w.@%+=~-]+/)+[\w.@%+=~-]+\.(?:" + _FILE_SUFFIXES + r")\b",
)
_SECRET_PATTERNS: Final = [(kind, re.compile(pattern)) for kind, pattern in _SECRET_PATTERN_TEXTS]
_ANY_PATH: Final = re.compile("|".join(f"(?:{pattern})" for pattern in _PATH_PATTERNS))
_STACK_ENTRY: Final = re.compile(r"[^;\n]+")
_LINE_IN_FRAME: Final = re.compile(r"\(\d+\): ")
_PUBLIC_PATH: Final = re.compile(
    r"(?:.*?[\\/])?((?:site|dist)-packages[\\/].*|lib[\\/]python\d[\d.]*[\\/].*|python\d\.\d+[\\/].*)"
)
"""Matches the part of a path from an installed package on, which is the same on every machine."""
_COMPILER_FOLDER_NAME: Final = re.compile(r"torch(?:inductor|dynamo)")
_FILE_NAME: Final = re.compile(rf".+\.(?:{_FILE_SUFFIXES})")
_USER_IN_PATH: Final = re.compile(
    r"(?:/home/|/Users/|[A-Za-z]:[\\/]Users[\\/]|/torchinductor_)([\w.@-]+)"
)
_HOST_NAME_KEY: Final = re.compile(r"(?i:host_?name|host|node|node_?name|machine)")
_COMMON_WORDS: Final = frozenset(
    {"root", "user", "users", "ubuntu", "runner", "public", "shared", "default"}
)
"""User names that are also common words, and so are not hidden everywhere."""
_MIN_PRIVATE_WORD_LETTERS: Final = 3
"""Smallest number of letters of a word that is hidden everywhere; shorter words occur within too
many other words.
"""

_PRIVATE_KEY: Final = re.compile(
    r"(?i:host_?names?|host|node_?name|machine|user|user_?name|login|home|cwd|argv|args_?list|command"
    r"|cmd_?line|command_?line|paths|executable|trace_?name|trace_?id|job_?(?:name|id)|run_?name"
    r"|process group (?:name|description)|pg_(?:name|desc)|comms id|serial(?:_?number)?|.*uuid.*"
    r"|.*pci_?(?:bus|device|domain)?_?id.*|concrete inputs|environ(?:ment)?|env)"
)
"""Matches keys whose values are all private, except harmless values such as numbers."""
_HARMLESS_VALUE: Final = re.compile(
    r"(?i:[\d\s.,\[\](){}x:e+-]*|true|false|none|null|on|off|yes|no|default_pg|cuda(?::\d+)?|cpu"
    r"|gpu|mps|[a-z,. ]*->[a-z. ]*|float\d*|bfloat16|half|double|u?int\d*|bool|sum|mean|max|min"
    r"|zeros|reflect|constant|replicate|circular|bilinear|nearest|bicubic|floor|trunc|tanh)"
)
"""Matches values that identify nobody: numbers, booleans, dtypes, modes of operators."""


def is_private_key(key: str) -> bool:
    """Returns whether the values of a key are private regardless of their form.

    >>> is_private_key("host_name"), is_private_key("Process Group Name"), is_private_key("name")
    (True, True, False)
    """
    return _PRIVATE_KEY.fullmatch(key) is not None


def is_harmless_value(text: str) -> bool:
    """Returns whether a value identifies nobody: a number, a boolean, a dtype."""
    return _HARMLESS_VALUE.fullmatch(text) is not None


def compile_pattern(text: str) -> Pattern:
    """Returns the compiled form of a regular expression given by the user.

    Raises:
        UsageError: It is not a valid regular expression.
    """
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"`{text}` is not a regular expression: {error}") from error


def pattern_of_words(words: Iterable[str]) -> Pattern | None:
    """Returns a pattern for any of the words as a whole word; None if all are short or common.

    >>> pattern_of_words({"jo", "jane"}).pattern
    '(?i)(?<![a-z0-9])(?:jane)(?![a-z0-9])'
    """
    long = {
        word
        for word in words
        if len(word) >= _MIN_PRIVATE_WORD_LETTERS and word.lower() not in _COMMON_WORDS
    }
    if not long:
        return None
    either = "|".join(re.escape(word) for word in sorted(long, key=lambda w: (-len(w), w)))
    return re.compile(f"(?i)(?<![a-z0-9])(?:{either})(?![a-z0-9])")


def find_users_and_hosts(key: str, text: str) -> Iterator[tuple[str, str]]:
    """Yields (kind, name) of each user and host that a text names, so that they can be hidden."""
    for found in _USER_IN_PATH.finditer(text):
        yield "user", found[1]
    if _HOST_NAME_KEY.fullmatch(key) and not _HARMLESS_VALUE.fullmatch(text):
        yield "host", text
        yield "host", text.partition(".")[0]


def redact_text(key: str, text: str, hide: HideFunction, *, hides_names: bool = False) -> str:
    """Returns a text from a trace with each private part replaced by what `hide` returns.

    Args:
        key: The text's key; empty if the text is itself a key.
        text: The text, without escapes.
        hide: Returns the replacement of a private part.
        hides_names: Whether names of the user's own files and functions are private, too.

    >>> redact_text("name", "/data/jo/net.py(3): run", lambda kind, text: kind)
    '/folder/net.py(3): run'
    """
    if is_private_key(key):
        return text if _HARMLESS_VALUE.fullmatch(text) else hide(key.lower(), text)
    if "(" in text:
        text = _STACK_ENTRY.sub(
            lambda found: _redact_stack_entry(found[0], hide, hides_names), text
        )
    for kind, form in _SECRET_PATTERNS:
        text = _hide_matches(form, kind, text, hide)
    return _ANY_PATH.sub(
        lambda found: _redact_path(found[0], hide, keeps_base=not hides_names), text
    )


def _hide_matches(pattern: Pattern, kind: str, text: str, hide: HideFunction) -> str:
    """Returns a text with every match of a pattern replaced by what `hide` returns for it."""
    return pattern.sub(lambda found: hide(kind, found[0]), text)


def _redact_stack_entry(entry: str, hide: HideFunction, hides_names: bool) -> str:
    """Returns a stack entry without private parts, and if asked without names of user code."""
    found = _LINE_IN_FRAME.search(entry)
    if found is None:
        return entry
    file, line, function = entry[: found.start()], found[0], entry[found.end() :]
    parsed = parse_frame(f"{file.strip()}{line}{function}")
    own = hides_names and parsed is not None and parsed.origin == "user"
    if not own:
        return _redact_path(file, hide, keeps_base=True) + line + function
    return _redact_path(file, hide, keeps_base=False) + line + hide("function", function)


def _redact_path(path: str, hide: HideFunction, *, keeps_base: bool) -> str:
    """Returns a path with its folders replaced by one word; paths inside packages are unchanged."""
    separator = "\\" if "\\" in path and "/" not in path else "/"
    public = _PUBLIC_PATH.fullmatch(path)
    if public is not None:
        before = path[: public.start(1)]
        return (_redact_folder(before, hide, separator) if before else "") + public[1]
    origin = parse_frame(f"{path.strip()}(1): f")
    is_relative = not path.startswith(("/", "~", ".", "\\"))
    if origin is not None and origin.origin != "user" and is_relative:
        return path
    folder, cut, base = path.rpartition(separator)
    if cut and not _FILE_NAME.fullmatch(base):
        return _redact_folder(path, hide, separator).rstrip(separator)
    told = _redact_folder(folder + cut, hide, separator) if cut else ""
    return told + (base if keeps_base or not base else _redacted_file_name(base, hide))


def _redact_folder(folder: str, hide: HideFunction, separator: str) -> str:
    """Returns a word in place of a path's folders; keeps a prefix that marks compiler folders."""
    if folder in {separator, ""}:
        return folder
    begin = separator if folder.startswith(("/", "\\")) else ""
    bare = folder.rstrip("\\/")
    word = hide("folder", bare)
    if word == bare:
        return folder
    compiled = _COMPILER_FOLDER_NAME.search(folder)
    return f"{begin}{compiled[0] + '_' if compiled else ''}{word}{separator}"


def _redacted_file_name(base: str, hide: HideFunction) -> str:
    """Returns the replacement of a file name, which keeps the file's suffix."""
    name, dot, suffix = base.rpartition(".")
    return f"{hide('file', name)}{dot}{suffix}" if dot else hide("file", base)
