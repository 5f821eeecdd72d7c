"""One reader per source.

In: a file's bytes and name. Out: its documents with facts, sections and stratum, and counts of what became no text.
A reader raises DocumentError and nothing else. It must not know other sources, the sample or a network.
"""
