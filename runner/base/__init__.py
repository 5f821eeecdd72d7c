"""What every room stands on: records, errors, canonical bytes, the store, HTTP, progress, numbers as text.

In: plain values, bytes and paths. Out: frozen records, digests, files written whole, errors with a way out.
It must not know any other room, any source, model or file of the record, or what a number will be used for.
"""
