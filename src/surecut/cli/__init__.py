"""The command line: `app` has the commands, `files` the table that they read, `positives` finds the positive label,
`printing` shows results.
"""
