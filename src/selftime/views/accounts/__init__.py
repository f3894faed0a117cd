"""The accounts that views draw from: what a slice costs, which step and line it belongs to.

A view knows no other view; what two of them need is kept here once, so that a number is the same
wherever it is shown.
"""
