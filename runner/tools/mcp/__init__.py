"""The MCP server: grading, comparing and explaining for language models.

In: a call with typed, bounded arguments. Out: the answer of one tool as data and text. It must not write anything or
reach a network.
"""
