"""A lock over any folder: SHA-256 of every file, and the git commit beside it.

In: a folder, and what was measured there. Out: a lock file, or what differs from one.
It must not know eval sets: the lock of a record is in `eval_set`.
"""
