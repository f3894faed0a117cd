"""The report as one HTML file, with the page, its style and its data inside.

Nothing in it asks the network. Its policy lets run the one script and the one style that it was
written with, by their hashes, and nothing else. What comes from the trace is in the data.
"""

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Any, Final

from selftime.reports.html.packing import inert
from selftime.reports.page_data.assets import asset

_POLICY: Final = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; "
    "base-uri {base}; form-action 'none'"
)
_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
{base}<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="selftime">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<noscript>This page draws a trace and needs JavaScript.</noscript>
<script type="application/json" id="selftime-data">{data}</script>
<script type="text/plain" id="selftime-licences">{licences}</script>
<script type="module">{script}</script>
</body>
</html>
"""
_FRAMED: Final = "about:srcdoc"
"""The address of a document within another's attribute; links in it would lead from the other's."""


def document(data: Any, *, title: str, framed: bool = False) -> str:
    """The report that carries these data, as a file, or for the `srcdoc` of a frame."""
    script, style = (_inner(asset(name).content) for name in ("app.js", "app.css"))
    policy = _POLICY.format(
        script=_hash(script), style=_hash(style), base="about:" if framed else "'none'"
    )
    return _PAGE.format(
        policy=policy,
        base=f'<base href="{_FRAMED}">\n' if framed else "",
        title=escape(title),
        style=style,
        data=inert(data),
        licences=_inner(asset("licences.txt").content),
        script=script,
    )


def _inner(content: bytes) -> str:
    r"""The text of a script or style, in which nothing ends the element that it is put in.

    In strings and patterns of JavaScript and CSS a backslash before `/` or `!` means nothing.

    >>> _inner(b'say("</SCRIPT><!--")')
    'say("<\\/SCRIPT><\\!--")'
    """
    content = content.replace(b"\r\n", b"\n")
    for ending in (b"</script", b"</style", b"<!--"):
        at = content.lower().find(ending)
        while at >= 0:
            content = content[: at + 1] + b"\\" + content[at + 1 :]
            at = content.lower().find(ending, at + 1)
    return content.decode("utf-8")


def _hash(text: str) -> str:
    """What a policy calls an inline script or style (CSP 3, section 2.3.1)."""
    return f"sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode('ascii')}"
