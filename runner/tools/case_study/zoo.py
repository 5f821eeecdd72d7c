"""The zoo: predictors that are broken, each as people meet it, and what is known of them beforehand."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from runner.tools.case_study import zoo_lists as made
from runner.tools.case_study.zoo_lists import Lists, Material, Report, each_occurrence, own_judgments

Expected = Literal["pass", "fail", "depends"]


@dataclass(frozen=True)
class Broken:
    """A broken predictor: what is wrong with it, where one meets it, and what it returns.

    `report` gives the scores it reports itself, if it measures in its own way. `expected` is the gate's verdict: "pass"
    if it does read the queries, "depends" if that is up to the collection; `caught_by` then says what finds it.
    `needs` is what it cannot be made without: a dense engine, or more than one stratum.
    """

    name: str
    broken: str
    met: str
    lists: Callable[[Material], Lists]
    report: Callable[[Material, Lists], Report] | None = None
    expected: Expected = "fail"
    caught_by: str = ""
    needs: Literal["", "dense", "strata"] = ""


def zoo_of(material: Material) -> list[Broken]:
    """The broken predictors that can be made of the material."""
    has = {"": True, "strata": len(set(material.strata.values())) > 1, "dense": material.dense is not None}
    return [broken for broken in ZOO if has[broken.needs]]


ZOO = (
    Broken(
        "oracle",
        "copies the answers from the answer key",
        "a test set that was indexed together with the documents",
        made.oracle,
        expected="pass",
        caught_by="nothing in its lists, which are perfect; it stands here as the ceiling, for a gate that refused it "
        "would refuse everything",
    ),
    Broken(
        "leaky half",
        "has seen the answers to half of the queries and is a plain engine on the others",
        "a model that was tuned on public test queries",
        made.leaky,
        expected="pass",
        caught_by="queries that were written after it was trained; no list tells an answer that was found from one "
        "that was learnt",
    ),
    Broken(
        "lucky few",
        "answers a fifth of the queries and returns rubbish for the others",
        "a synonym table or a set of rules written for the queries of one demonstration",
        made.lucky_few,
        expected="pass",
        caught_by="a look at single queries: most score 0, and a mean does not say so",
    ),
    Broken(
        "engine, each hit twice",
        "returns every document twice, once for each of two chunks, and is paid twice",
        "an index of chunks whose hits are never merged into documents, measured by a script of one's own",
        made.repeated,
        each_occurrence,
        expected="pass",
        caught_by="counting a document once, as every run of this tool must; what is left is an engine of five hits",
    ),
    Broken(
        "hashed words",
        "compares hashes of words where a model was meant to compare meanings",
        "a stand-in for the model, written for tests, that went into production",
        made.token_hash,
        expected="pass",
        caught_by="the probe of the encoder, which asks whether a paraphrase is nearer than a stranger",
    ),
    Broken(
        "hybrid with a dead arm",
        "fuses a real engine with hashes of whole texts: half of every list is noise",
        "ruflo's ADR-086: the model failed at every call, a hash took its place in silence, the score looked plausible",
        made.half_hybrid,
        expected="pass",
        caught_by="the paired comparison with the engine alone, which it should have improved, and the probe of the "
        "encoder",
    ),
    Broken(
        "hashed texts",
        "compares hashes of whole texts: equal texts are near, all others strangers",
        "the same fallback by itself, behind a flag that said the embedding was real",
        made.text_hash,
    ),
    Broken(
        "one vector for all",
        "embeds every text as the same vector, but for noise",
        "pooling over padding, weights that were never loaded; all cosines are above .99",
        made.one_vector,
    ),
    Broken(
        "deaf encoder",
        "embeds the first query in the place of every query",
        "a cache whose key leaves out the text",
        made.deaf_encoder,
        needs="dense",
    ),
    Broken(
        "deaf engine",
        "searches for the first query, whatever is asked",
        "a loop that captured the wrong variable, a cached response",
        made.deaf_engine,
    ),
    Broken(
        "off by one",
        "a real engine whose answers are filed under the query before",
        "a header line read as a query, a list that begins at 1",
        made.off_by_one,
        expected="depends",
        caught_by="the comparison with any engine that works; where neighbouring queries share an answer, as two "
        "versions of one query do, the neighbour's list does answer the query, and the gate says no more than that",
    ),
    Broken(
        "mixed up",
        "a real engine whose answers are filed under other queries at random",
        "results of parallel workers, joined in the order in which they came back",
        made.mixed_up,
    ),
    Broken(
        "engine, shuffled",
        "a real engine whose first ten are in random order",
        "scores that were lost between retrieval and ranking, a set where a list was meant",
        made.shuffled,
    ),
    Broken(
        "engine, worst first",
        "a real engine whose first ten are in reverse",
        "a distance sorted as if it were a similarity",
        made.worst_first,
    ),
    Broken(
        "favourite, self-judged",
        "returns one document to everybody, and judges nothing but what it returned",
        "relevance that is looked up among one's own hits, with queries that found nothing left out of the mean",
        made.one_document,
        own_judgments,
    ),
    Broken(
        "most popular",
        "returns the ten documents that are most often right to everybody",
        "a recommender's default page",
        made.most_popular,
    ),
    Broken(
        "source prior",
        "knows where a query comes from, not what it says, and returns that source's favourites",
        "a router in front of an empty index",
        made.source_prior,
        needs="strata",
    ),
    Broken(
        "marginal-matched",
        "draws ten documents by how often they are right",
        "a model that learnt the distribution of the answers and nothing else",
        made.marginal_matched,
    ),
    Broken(
        "stub",
        "returns the same ten documents to everybody",
        "a placeholder that was never replaced",
        made.stub,
    ),
    Broken(
        "random",
        "draws ten documents for each query",
        "vectors of one corpus under the ids of another",
        made.drawn_at_random,
    ),
    Broken(
        "longest",
        "returns the ten longest documents to everybody",
        "raw counts of words, not normalised by length",
        made.longest,
    ),
    Broken(
        "first ids",
        "returns the first ten documents in the order of their ids to everybody",
        "scores that are all equal, with ties broken by id",
        made.first_ids,
    ),
)
