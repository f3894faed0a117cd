"""Serves the web page that shows traces as a WSGI app: `selftime serve` and TensorBoard use it.

In the order in which a request passes them:

    access_guard  access: host names and tokens
    app           routes, headers and compression; errors as one sentence
    answers       responses as JSON: traces, views, advice, comparisons, rules, source
    sql_answers   what queries in SQL can read, and their results, within limits
    query_tracks  these results as tracks of the timeline
    jobs          the job that a trace belongs to
    caches        responses in memory and on disk
    sources       the traces that are served
"""

from selftime.web.app import PageApp
from selftime.web.sources import ListedTrace, TracesAtPaths, TraceSources

__all__ = ["ListedTrace", "PageApp", "TraceSources", "TracesAtPaths"]
