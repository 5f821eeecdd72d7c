"""Arguments in, exit code and words out: one module per subcommand, and the driver in `main`.

What goes in is a command line; what comes out is an exit code of runner/base/errors.py, the answer on stdout and
progress on stderr. A command parses flags, calls what lives in runner.tools or in the room that it belongs to, and
prints; it imports that when it runs, so that --help stays fast. No other room imports this one.
"""
