"""One HTML file with all that a reader needs of some traces.

From what there is to the file:

    tables      which tables of a trace it may carry, and in which order they matter
    tiles       the timeline among them
    behind      the slices behind the heaviest rows
    sources     the lines of the program
    pair        two traces held against each other
    packing     values as small text
    budget      how the room is spent
    contents    all of it, chosen to fit
    document    the file
"""

from selftime.reports.html.contents import LIMIT, Frame, as_html
from selftime.reports.html.pair import Pair

__all__ = ["LIMIT", "Frame", "Pair", "as_html"]
