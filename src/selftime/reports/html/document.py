"""Writes a report as one HTML file that contains the page, its style and its data.

The file makes no network requests. Its content security policy allows only its own script and
style, by their hashes. Text from the trace is only in the data.
"""

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Any, Final

from selftime.reports.html.packing import html_safe_json
from selftime.reports.page_data.assets import asset

_CONTENT_SECURITY_POLICY_TEMPLATE: Final = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; "
    "base-uri {base}; form-action 'none'"
)
"""Content security policy of the HTML file: no script or style may run but those in the file."""
_HTML_TEMPLATE: Final = """\
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
"""HTML of the file, with placeholders for policy, title, style, data, licences and script."""
_FRAMED_DOCUMENT_URL: Final = "about:srcdoc"
"""URL of a `srcdoc` document, to which links in a framed report are relative."""


def html_document(report_data: Any, *, title: str, is_framed: bool = False) -> str:
    """Returns the HTML of a report with the given data: for a file, or for an iframe's `srcdoc`."""
    script, style = (_escape_closing_tags(asset(name).content) for name in ("app.js", "app.css"))
    policy = _CONTENT_SECURITY_POLICY_TEMPLATE.format(
        script=_content_policy_hash(script),
        style=_content_policy_hash(style),
        base="about:" if is_framed else "'none'",
    )
    return _HTML_TEMPLATE.format(
        policy=policy,
        base=f'<base href="{_FRAMED_DOCUMENT_URL}">\n' if is_framed else "",
        title=escape(title),
        style=style,
        data=html_safe_json(report_data),
        licences=_escape_closing_tags(asset("licences.txt").content),
        script=script,
    )


def _escape_closing_tags(content: bytes) -> str:
    r"""Returns a script or style escaped so that no text in it closes the HTML element around it.

    In strings and patterns of JavaScript and CSS a backslash before `/` or `!` has no effect.

    >>> _escape_closing_tags(b'say("</SCRIPT><!--")')
    'say("<\\/SCRIPT><\\!--")'
    """
    content = content.replace(b"\r\n", b"\n")
    for marker in (b"</script", b"</style", b"<!--"):
        position = content.lower().find(marker)
        while position >= 0:
            content = content[: position + 1] + b"\\" + content[position + 1 :]
            position = content.lower().find(marker, position + 1)
    return content.decode("utf-8")


def _content_policy_hash(text: str) -> str:
    """Returns the hash that allows an inline script or style in a content security policy."""
    return f"sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode('ascii')}"
