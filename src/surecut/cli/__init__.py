"""The command line: `app` has the commands, `files` reads files as other programs write them, `positives` knows the
words that name a positive label, `printing` says what came of it.
"""
