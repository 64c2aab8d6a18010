"""The command line: `app` has the commands, `files` the table that they read, `positives` knows the words that name a
positive label, `printing` shows results.
"""
