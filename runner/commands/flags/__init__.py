"""Flags that several commands share, and the records that they become.

In: an argument parser, then its options. Out: one typed record per group of flags, checked for what excludes what.
It must not act on a flag.
"""
