"""Documents from their official publishers.

In: a source's name, a number and a seed, or a manifest. Out: files in a folder, each recorded once it is whole, with
the draw kept beside them.
`table` has a row for each feed: names as patterns (`names`), listings as shapes, functions for the rest.
It must not parse a document. It reaches only the hosts in `endpoints`, slowly, and never prints a key.
"""
