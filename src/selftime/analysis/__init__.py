"""The accounts that views draw from: what a slice costs, which step and line it belongs to.

A view knows no other view; what two of them need is kept here once, so that a number is the same
wherever it is shown. One folder for each subject: `steps`, `device`, `idle`, `tree` (what ran
within what), `memory`, `models` (operations and bytes of operators), `tiles` (the timeline),
`trust` (the health of a recording). What all of them use lies beside them.
"""
