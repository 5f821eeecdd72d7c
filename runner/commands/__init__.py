"""argv in, exit code and words out: one module per subcommand.

In: command-line arguments. Out: the answer on stdout, progress and errors on stderr, an exit code of the README.
It must not do the work: a command parses, makes one call into a room below, and prints. Heavy imports stay inside
functions, so that --help and --dry-run start fast.
"""
