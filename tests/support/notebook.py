"""Notebooks run without a kernel: `python -m tests.support.notebook FILE` runs one and stores its outputs in it."""

import ast
import json
import os
import sys
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

MIMES = {"_repr_svg_": "image/svg+xml", "_repr_html_": "text/html"}


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of its code cells, run top to bottom in one namespace and an empty folder.

    What a cell shows is the value of its last line, as a notebook would show it; an exception ends the run.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    made, number = [], 0
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                number += 1
                value = _run("".join(cell["source"]), namespace, cell["id"])
                cell = {**cell, "execution_count": number, "outputs": _outputs(value, number)}
            made.append(cell)
    return {**notebook, "cells": made}


def as_text(notebook: dict[str, Any]) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _run(source: str, namespace: dict[str, Any], name: str) -> object:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), namespace)
    return eval(compile(ast.Expression(last.value), name, "eval"), namespace) if last else None


def _outputs(value: object, number: int) -> list[dict[str, Any]]:
    if value is None:
        return []
    data = {mime: _lines(getattr(value, name)()) for name, mime in MIMES.items() if hasattr(value, name)}
    data = data or {"text/plain": _lines(repr(value))}  # a table's text depends on the terminal
    return [{"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}]


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for path in map(Path, sys.argv[1:]):
        path.write_text(as_text(executed(json.loads(path.read_text(encoding="utf-8")))), encoding="utf-8")
