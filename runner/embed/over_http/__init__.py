"""Encoders behind an address: TEI, vLLM, infinity, llama.cpp.

In: texts, the server's address and dialect, an encoder's row of the catalog. Out: vectors that were checked for count,
shape and norm, and what the server says of itself.
It must not know where the texts come from, and it must never print or store the key.
"""
