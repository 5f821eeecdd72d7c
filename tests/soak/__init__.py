"""Long trials: killed evenings, damaged files, flipped bytes and failing services, until a count is reached.

`make soak` runs them; no test does. Each trial is a function of its kind, number and seed.
"""
