"""What the tools beside the evening do, one folder per tool.

In: typed arguments. Out: typed findings and their text; `commands` reads argv and turns findings into exit codes.
A tool must not change a version's record or parse argv.
"""
