"""Processes for tests to kill, forked in milliseconds from one server that has imported what they need.

There is one server a test process, and the first of its modules to start it decides what it has imported.
"""

import multiprocessing

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(
    [
        *("tests.support.unsynced", "tests.support.evening_process", "tests.support.judging_process", "anthropic"),
        "tests.support.small_index",
        *("bm25s", "lxml.etree", "samplers.corpus.parse", "samplers.corpus.sampling", "tiktoken", "zstandard"),
    ]
)
