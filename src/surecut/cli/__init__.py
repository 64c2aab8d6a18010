"""The command line: `app` has the commands, `files` reads what strangers write, `positives` tells which label is meant,
`printing` says what came of it.
"""
