"""The page's server: one WSGI app, which `selftime serve` and TensorBoard mount.

In the order of the way of a question:

    guard       who may ask: the host's name, the token of an open address
    app         addresses, headers, compression; errors as one sentence
    questions   the words of an address as options and a query
    answers     traces, views, advice, rules, as JSON; what was answered is kept
    jobs        what all traces of one job tell together
    shelf       what is in memory: bounded, and made once however many ask
    kept        what is on disk beside the cache of tables
    sources     which traces there are
"""

from selftime.web.app import App
from selftime.web.sources import Files, Listed, Sources

__all__ = ["App", "Files", "Listed", "Sources"]
