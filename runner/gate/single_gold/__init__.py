"""The null gate for benches with one right answer per query.

In: ranked lists, gold ids, a pool and a measure by name or function. Out: the verdict on four nulls, with exact moments
where the measure has them and draws if it has not.
It must not know eval sets: `grade` and docs/library.md use it on any retriever's output.
"""
