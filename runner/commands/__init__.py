"""argv in, exit code and words out: `verbs.py` has every verb in a row, and names the function that does it.

In: command-line arguments. Out: the answer on stdout, progress and errors on stderr, an exit code of the README.
It must not do the work: a command makes one call into a room below, and prints. Its module is loaded when its verb is
called, and no help loads more than the table, so that --help and --dry-run start fast.
"""
