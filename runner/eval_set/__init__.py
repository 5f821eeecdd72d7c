"""The catalog, and one version of an eval set on disk.

In: the files of a version, and what the catalog knows of sources and encoders. Out: checked records of each file, and
the files written by the same rules: append-only labels, digests in the preregistration, the lock.
It must not know how a chunk is embedded, a run is scored or a page is drawn; it only keeps what they hand it.
"""
