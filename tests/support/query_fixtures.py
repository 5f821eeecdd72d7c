"""What tests of the authoring of queries share."""

import json

from runner.base.records import Document
from runner.eval_set.corpus import corpus_documents
from runner.judge.models.requests import Reply


def document(doc_id="D1", text="The ferry office shall dredge the harbor.", title="Harbor Act", **more):
    return Document(doc_id, text, title, more.pop("stratum", "s"), doc_id, more.pop("url", ""), **more)


def by_id(version):
    return {one.doc_id: one for one in corpus_documents(version, None)}


class Drafter:
    """A language model in this process: `write` gives the text or the Reply for an ask."""

    model = "drafter-1"

    def __init__(self, write):
        self.write, self.asked, self.closed = write, [], False

    def replies(self, asks):
        for ask in asks:
            self.asked.append(ask)
            written = self.write(ask)
            if isinstance(written, Exception):
                raise written
            yield written if isinstance(written, Reply) else Reply(ask.key, written, self.model)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closed = True


def drafted(kind, query, note="", **more):
    return json.dumps({"kind": kind, "query": query, "note": note, **more})
