"""Language models as judges: what they are asked, what they reply, what it costs.

In: the judges that a plan names, batches, a ceiling in dollars. Out: replies kept as received, then answers read from
them, with every cost held before it is spent.
It must not know runs or scores. A new service is a client as in `client` and `openai_chat`, opened in `api`.
"""
