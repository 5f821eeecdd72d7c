"""The shape of every file of the record: one module per file or part of it.

In: nothing but field types. Out: strict, frozen models that refuse unknown fields; docs/schemas/ is made of them.
A shape must not compute: it knows no rule, no statistic and no wording.
"""
