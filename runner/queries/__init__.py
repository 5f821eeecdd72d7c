"""Where a version's queries come from: the pack to read, drafts by people and language models, checks, additions.

What goes in is a version with its sampled documents; what comes out are rows of queries.yaml that keep the rules, and
reports on those that do not. Nothing here knows a cell's score: queries are written before anything is retrieved for
them and judged, and frozen with the preregistration.
"""
