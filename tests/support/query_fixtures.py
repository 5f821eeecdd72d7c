"""What tests of the authoring of queries share."""

from runner.base.records import Document
from runner.eval_set.corpus import corpus_documents


def document(doc_id="D1", text="The ferry office shall dredge the harbor.", title="Harbor Act", **more):
    return Document(doc_id, text, title, more.pop("stratum", "s"), doc_id, more.pop("url", ""), **more)


def by_id(version):
    return {one.doc_id: one for one in corpus_documents(version, None)}
