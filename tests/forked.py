"""Processes for tests to kill, forked in milliseconds from one server that has imported what they need.

There is one server a test process, and the first of its modules to start it decides what it has imported.
"""

import multiprocessing

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(
    [
        "tests.unsynced",
        "tests.evening_process",
        "tests.judging_process",
        "anthropic",
        "bm25s",
        "lxml.etree",
        "samplers.reading",
        "samplers.sampling",
        "tiktoken",
        "zstandard",
    ]
)
