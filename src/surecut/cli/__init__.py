"""The command line: `app` has the commands, `files` the table that they read, `positives` knows the words that name a
positive label, `printing` shows results. What commands do in between is in `commands`, `certifying` and `checking`, and
of bands in `bands`; `bands_tables` shows those.
"""
