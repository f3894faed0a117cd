"""Writes a report: one self-contained HTML file about one or more traces.

tables      the tables of a trace that a report may contain, with the timeline
sources     the source lines
pair        the comparison of two traces
packing     compression, and the choice of what fits in the size limit
contents    all data of the report
document    the HTML file
summary     advice as HTML without style and script, for notebooks
"""

from selftime.reports.html.contents import LIMIT, Frame, as_html
from selftime.reports.html.pair import Pair

__all__ = ["LIMIT", "Frame", "Pair", "as_html"]
