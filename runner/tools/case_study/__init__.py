"""Real engines and broken predictors through both null gates.

In: the folder of an external evaluation. Out: each system's verdict, and what a plain table of scores would
have hidden. It must not know eval sets of sources, and its broken predictors give the same lists on every machine.
"""
