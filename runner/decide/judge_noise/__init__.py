"""What the judges' errors do to a choice.

In: the scored grades, and second or people's grades of some of the pairs. Out: how often the same cell would be chosen,
and each gain with the judge's error counted in.
It must not know tiers: `other_judges` and `tiers` say what follows.
"""
