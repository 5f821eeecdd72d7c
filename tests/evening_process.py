"""A whole evening over the small set in a process of its own, so that tests can kill it: FOLDER is its only argument.

It does what an operator does: run, judge what is outstanding, import, run again, choose.
"""

import sys
from pathlib import Path

from runner.decide import Choice
from runner.errors import Outstanding
from runner.lock import verify_version
from runner.pipeline import Evening
from runner.prep_labels import import_answers
from runner.store import exclusive
from tests.small_set import answers, fake_encoders, make_version, write_corpus, write_queries

CHOICE = Choice("recommended", "", "test")


def run(folder: Path) -> str:
    version = make_version(folder)
    if not (folder / "corpus.written").exists():
        write_corpus(folder / "corpus")
        write_queries(version.folder)
        (folder / "corpus.written").touch()
    while True:
        try:
            return Evening(version, folder / "corpus", choice=CHOICE, encoders=fake_encoders).run()
        except Outstanding:
            with exclusive(version.work / "version.lock", "a test"):
                verify_version(version)
                for path in answers(version):
                    import_answers(version, path, judge="words", model="", judged_on="2026-01-31")


if __name__ == "__main__":
    print(run(Path(sys.argv[1])))
