"""Whether what any retriever returned beats systems that know nothing of the query.

In: a bench (one right answer per query) or a TREC run with qrels. Out: the gate's verdict, as data and as text.
It must not know cells, plans or versions.
"""
