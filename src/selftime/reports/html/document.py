"""Writes a report as one HTML file that contains the page, its style and its data.

The file makes no network requests. Its content security policy allows only its own scripts and
style, by their hashes: that of the page, which is compressed, and the one that decompresses it.
Text from the trace is only in the data.
"""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from typing import Any, Final, NamedTuple

from selftime.reports.html.packing import compress_json, html_safe_json
from selftime.reports.page_data.assets import asset

_CONTENT_SECURITY_POLICY_TEMPLATE: Final = (
    "default-src 'none'; script-src '{loader}' '{script}'; style-src '{style}'; img-src data:; "
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
</head>
<body>
<noscript>This page draws a trace and needs JavaScript.</noscript>
<script type="application/json" id="selftime-data">{data}</script>
<script type="text/plain" id="selftime-licences">{licences}</script>
<script type="text/plain" id="selftime-page">{page}</script>
<script type="module">{loader}</script>
</body>
</html>
"""
"""HTML of the file, with placeholders for policy, title, data, licences and the packed page."""
_LOADER: Final = """
const add = (parent, name, text) => {
  const element = Object.assign(document.createElement(name), {textContent: text});
  if (name === "script") element.type = "module";
  parent.append(element);
};
if (typeof DecompressionStream === "undefined") {
  add(document.body, "p", "This page needs a browser of 2023 or later.");
} else {
  const packed = atob(document.getElementById("selftime-page").textContent);
  const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const {style, script} = await new Response(stream).json();
  add(document.head, "style", style);
  add(document.body, "script", script);
}
"""
"""JavaScript that decompresses the page's style and script, and adds them to the document."""
_FRAMED_DOCUMENT_URL: Final = "about:srcdoc"
"""URL of a `srcdoc` document, to which links in a framed report are relative."""


def html_document(report_data: Any, *, title: str, is_framed: bool = False) -> str:
    """Returns the HTML of a report with the given data: for a file, or for an iframe's `srcdoc`."""
    page = _packed_page(asset("app.js").content, asset("app.css").content)
    policy = _CONTENT_SECURITY_POLICY_TEMPLATE.format(
        loader=_content_policy_hash(_LOADER),
        script=page.script_hash,
        style=page.style_hash,
        base="about:" if is_framed else "'none'",
    )
    return _HTML_TEMPLATE.format(
        policy=policy,
        base=f'<base href="{_FRAMED_DOCUMENT_URL}">\n' if is_framed else "",
        title=escape(title),
        data=html_safe_json(report_data),
        licences=_escape_closing_tags(asset("licences.txt").content),
        page=page.packed,
        loader=_LOADER,
    )


class _PackedPage(NamedTuple):
    """The page's script and style, compressed together, and their hashes for the policy."""

    packed: str
    script_hash: str
    style_hash: str


@cache
def _packed_page(script_content: bytes, style_content: bytes) -> _PackedPage:
    script, style = script_content.decode("utf-8"), style_content.decode("utf-8")
    packed = compress_json({"style": style, "script": script})
    return _PackedPage(packed, _content_policy_hash(script), _content_policy_hash(style))


def _escape_closing_tags(content: bytes) -> str:
    r"""Returns a text escaped so that nothing in it closes the HTML element around it.

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
