"""Two results side by side on one page.

In: two results.json with their decisions, or a record and a substrate report. Out: one page that says which figures may
be compared and which may not, with reasons.
It must not decide anything or write into either record.
"""
