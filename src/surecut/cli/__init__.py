"""The command line: `app` has the commands, `files` reads what strangers write, `printing` says what came of it."""
