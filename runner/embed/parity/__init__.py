"""Whether a backend makes the vectors that this machine makes.

In: two backends of one encoder. Out: the differences over 32 fixed texts, what each means, and a verdict with a digest.
It must not know documents, cells or scores: its texts are its own.
"""
