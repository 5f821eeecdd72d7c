"""Claude as a judge, one request at a time or by Message Batches.

In: asks from `requests`, a key from the environment, a deadline. Out: one reply per ask, in any order.
It must not know what is asked or how a reply is read, and it must never print or store the key.
"""
