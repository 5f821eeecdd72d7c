"""Every verb in one table: its name, what it does, its function, a command line that works, and its arguments.

Help and parsers are made from it. Nothing heavy is imported here: a help costs little more than Python's own start.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from runner.base.errors import InputError
from runner.base.places import DRIVER
from runner.embed.cost import MAX_USD

if TYPE_CHECKING:
    from argparse import Namespace

    Command = Callable[[Namespace], int | None]


class Verb(NamedTuple):
    """A verb, in a row of the table; one of two words is an action of the first.

    What it `does` is on the screen of all verbs, and at the head of its help unless `description` says more.
    `function` is "module:name", imported when the verb is called. `arguments` have a line each, form and help, as
    `runner.commands.console` reads them. `ending` is printed below them in the help, with the exit codes.
    """

    name: str
    does: str
    function: str = ""
    example: str = ""
    arguments: str = ""
    ending: str = ""
    description: str = ""


_NAMES = "bills, us_code, demo, ...; or --source NAME"
_EVAL_SET = "--eval-set-path FOLDER   holds v1/, v2/; default eval-sets/SOURCE\n"
_VERSION = f"SOURCE   {_NAMES}\n{_EVAL_SET}"
_WHERE = f"""
    where encoders run:
    --modal   on Modal, by the account of `modal token new` or MODAL_TOKEN_ID/_SECRET
    --gpu NAME   Modal's name of the GPU; default L4, 'cpu' for none
    --max-usd USD   stop before more is spent on a version; default {MAX_USD:g}
    --encoder-url URL   on a server: .../v1/embeddings, or TEI's .../embed; key PSE_ENCODER_API_KEY
    --send-key NAME=HOST...   agree, once, that an encoder of the plan sends this variable's key to this host
"""
_MODELS = """
    language models:
    --judge [messages|batches]   {}; 'batches' cost half the price and up to a day
    --judge-url URL   an OpenAI-compatible server, or a proxy for Anthropic's API
    --judge-price IN,OUT   dollars a million tokens, in place of the dated table
"""
_EVENING = f"""
    --corpus-path PATH   documents to sample (first run), or a collection
    --rehearse   the rehearsal's plan: packaged encoders, never a decision
    --try   a rehearsal in a folder of its own; nothing of it counts
    --json   stdout is one JSON object: docs/eval-architecture.md lists its fields
    {_WHERE}"""
_QUERIES = f"{_VERSION}--corpus-path PATH   the documents, where their archive is gone\n"
_LABELS = f"{_VERSION}--rehearse   seen as the rehearsal; grades are the same\n--try   of the trial\n"

EXIT_CODES = "0 done, 1 no, 2 your input, 3 your turn, 4 changed, 5 backend"

GROUPS: dict[str, tuple[Verb, ...]] = {}
"""The verbs by the heading of the help, in its order."""

GROUPS["Start here"] = (
    Verb(
        "try",
        "rank chunkers, BM25 and a packaged model over your own folder",
        "tools:try_",
        "try docs",
        """FOLDER   Markdown, text, HTML, PDF or JSON; also a ZIP, JSON lines, an SQLite table
        --queries FILE   a query a line, or .csv with query,document; default: headings of the documents
        --output FILE   where the page goes; default .work/try-FOLDER.html""",
        """Nothing is recorded, and nothing is decided. docs/own-documents.md goes on from there.""",
        """Searches your documents with six cells and prints them ranked: a packaged model, BM25, and the sum of both,
        over windows of 256 tokens and over sections. If FILE says which document each query wants, that is what is
        scored, with intervals and tests against the first cell.""",
    ),
    Verb(
        "init",
        "write a plan; draw documents from --corpus-path or --live",
        "evening:init",
        "init bills",
        f"""[SOURCE]   {_NAMES}; none with --documents
        {_EVAL_SET}
        --corpus-path PATH   documents: a folder, a ZIP or the substrate's database
        --live   documents from the source's live feed
        --size N   documents to sample; default the catalog's, 750 for most sources
        --encoder NAME...   compare this encoder of the catalog too, with the baseline's and the structural chunker
        documents of your own, in place of SOURCE:
        --documents PATH   Markdown, text, HTML, PDF or JSON in a folder or ZIP, JSON lines, an SQLite table
        --name NAME=   what to call them from then on; default the folder's name
        --field NAME=FIELD...   which field has their text, title, id, stratum, family or url; or table=TABLE
        in a folder of your own:
        --baseline CELL=   what you run today; by default the roster's, or MiniLM for your own documents""",
        "Edit plan.yaml before pairs go to a judge, if at all; then it is frozen. docs/own-documents.md",
    ),
    Verb(
        "next",
        "what to do now, as one command",
        "standing:next_step",
        "next demo",
        f"""[SOURCE]   {_NAMES}; without it: that of --eval-set-path, or which is next
        {_EVAL_SET}
        --rehearse   of the rehearsal
        --try   of the trial
        --json   stdout is one JSON object""",
        "Nothing is written, nothing is computed.",
    ),
    Verb(
        "view",
        "open the results page",
        "version:view",
        "view demo",
        f"""{_VERSION}
        --rehearse   the rehearsal's page
        --try   the trial's page
        --passages   a copy with titles and passages, for this machine alone
        --output FILE   where to write that copy, by default into .work""",
        "--passages adds titles and passages from the archive of the sample: for reading here, never for the record.",
    ),
)

GROUPS["The evening"] = (
    Verb(
        "run",
        "move the evaluation as far as it can go; --judge: by language models",
        "evening:run",
        "run demo",
        f"""{_VERSION}
        --live   documents from the source's live feed, where the version has none yet
        --trec-run FILE...   another system's run, of a collection
        {_EVENING}{_MODELS.format("have those that plan.yaml names grade what is missing")}""",
        "Run it again after every stop: it goes on, and makes nothing twice. Keys come from the environment.",
    ),
    Verb("queries", "a pack to read; check and add queries"),
    Verb(
        "queries sample",
        "a pack of 25 documents to read; --log: queries that people asked",
        "queries:sample",
        "queries sample demo",
        f"""{_QUERIES}
        --log FILE   draw from a CSV file with the columns query and count, into a file to look over
        --size N=30   queries to draw from it, a third of each band; default 30""",
        """A log is yours to clean: leave out who asked and when, and every query that names a person, before it comes
        here. docs/queries.md has the whole way.""",
    ),
    Verb(
        "queries check",
        "riddles, giveaways, copies, lost source documents",
        "queries:check",
        "queries check demo drafts.yaml",
        f"{_QUERIES}[FILE...]   in the form of queries.yaml; default the version's own",
        "The report is Markdown. Several files are held against each other too.",
    ),
    Verb(
        "queries add",
        "put the queries of a file into the version",
        "queries:add",
        "queries add demo drafts.yaml",
        f"{_QUERIES}FILE...   in the form of queries.yaml, or a CSV file with the column query",
        "Further columns: query_id, document, paraphrased, kind, origin (default person), note.",
    ),
    Verb("labels", "grades by file and by people: import, page, double, ..."),
    Verb(
        "labels import",
        "a judge's answers into labels.jsonl",
        "labels:import_",
        "labels import demo answers.jsonl --judge=ann --person",
        f"""{_LABELS}
        FILE...   answers, one JSON object a line; or FILE.csv with query_id, doc_id, grade, perhaps reason
        --judge NAME=   who judged, where the lines do not say
        | --model ID   a language model or a program judged; its id, where the lines do not say
        | --person   a person judged""",
        "docs/judging.md has the form of a line.",
    ),
    Verb(
        "labels page",
        "one offline page to judge by keyboard",
        "labels:page",
        "labels page demo --judge=ann",
        f"""{_LABELS}
        [FILE...]   these batches; default: those that wait
        --judge NAME=   who will judge; the page asks otherwise
        --output FILE   where the page goes""",
    ),
    Verb(
        "labels double",
        "a share of the pairs again, for a second judge",
        "labels:double",
        "labels double demo --share 0.1",
        f"{_LABELS}--share X   of the judged pairs, above 0 to 1; default 0.1",
    ),
    Verb(
        "labels agreement",
        "how far the judges agree",
        "labels:agreement",
        "labels agreement demo",
        f"{_LABELS}--json   as JSON",
    ),
    Verb(
        "labels withdraw",
        "void every grade of a judge; nothing is deleted",
        "labels:withdraw",
        "labels withdraw demo --judge=ann",
        f"""{_LABELS}
        --judge NAME!   whose grades, as labels.jsonl names the judge
        --reason TEXT=   why; it is kept in the rows""",
        """Its pairs wait for a judge again. To mend one grade, import all of the judge's files again, that one mended.
        Grades are final once the version is decided.""",
    ),
    Verb(
        "choose",
        "record the decision",
        "evening:choose",
        "choose demo recommended",
        f"""{_VERSION}
        CELL   what goes to production; or 'recommended', or 'baseline'
        --reason TEXT=   why; not needed for 'recommended'
        --by NAME=   who decides; it is recorded
        {_EVENING}""",
        """`recommended` is the candidate expected to gain most, or what runs today if a switch costs as much.
        Of a source with weak structure, `baseline` is recorded unevaluated.""",
    ),
)

GROUPS["Look closer"] = (
    Verb(
        "plan",
        "what exists, what is missing, what it costs; writes nothing",
        "standing:plan",
        "plan demo",
        f"{_VERSION}{_EVENING}{_MODELS.format('what they would cost')}",
        "Its last line is exactly `decision recorded` (exit 0), or begins `undecided: `.",
    ),
    Verb(
        "explore",
        "score another cell; decides nothing",
        "evening:explore",
        "explore demo 'bm25 x whole_doc'",
        f"{_VERSION}CELL...   ENCODER x CHUNKER, bm25 x CHUNKER, ...\n{_EVENING}",
        "Needs a version whose pairs were given to a judge. docs/new-version.md",
    ),
    Verb(
        "sources",
        "how far every source has come",
        "standing:sources",
        "sources",
        """[SOURCE]   this source alone
        --stale   decisions whose cell or baseline the catalog has moved on from
        --write   write docs/data-status.md
        --check   compare docs/data-status.md with the eval sets; write nothing
        --json   one JSON value""",
        """Without a flag: every source in the order of bulk embedding.""",
    ),
    Verb(
        "compare",
        "one run against another, or against published means",
        "tools:compare",
        "compare RUN.json",
        """RUN   per-query scores, or - for standard input
        --paired FILE   the run to compare with, query by query
        --cell CELL   which cell, where RUN is a results.json
        --other-cell CELL   which cell, where the other one is a results.json
        --baselines FILE   published means, {name: mean}, for RUN's own
        --rng default|mulberry32=default   mulberry32: as ruflo's
        --json   one JSON object""",
        """A run holds per-query nDCG@10: {"perQuery": [{"qid": ..., "ndcg10": ...}]}, with `baselines` {name: mean} if
        there are any; or it is a results.json, of which --cell and --other-cell choose a cell. mulberry32 gives the
        figures of ruflo's script (seed 42, 10,000 resamples), except that queries that one run lacks and repeated
        queries are errors. A query without results has to be in it with 0, or the mean is too high. Exit code 0
        whatever the comparison says: it is no gate. 2 where an input is wrong.""",
        "Intervals and labels for one run; a paired test for two.",
    ),
    Verb(
        "export",
        "results, queries and grades as CSV",
        "version:export",
        "export demo --output tables",
        f"""{_VERSION}
        --version N   of this version instead of the newest
        --rehearse   the rehearsal's results
        --output FOLDER!   where to write them; outside the record""",
        """Tables: cells (one row a cell), scores (query, cell, measure, value), hits, queries (as `queries add` and
        `try` read them), mix (the shares at which another cell would be recommended) and grades (as `labels import`
        does). No text of documents is in them. Texts that a spreadsheet would take for a formula stand behind an
        apostrophe.""",
        "Writes a version's results, queries and grades as tables.",
    ),
    Verb(
        "pooled",
        "what the locked results of all sources say together",
        "tools:pooled",
        "pooled eval-sets/demo/v1",
        """[FOLDER...]   a locked version, as eval-sets/bills/v1
        --rehearse   pool rehearsals, which decide nothing
        --json   print every figure as JSON, with the digests of all inputs""",
        """Without FOLDER, the newest locked version of every source of the roster. Each cell's gain over its source's
        baseline is taken as what cells of its kind gain anywhere, and what is the source's and its own. It ends with
        the prior that a new source's plan gets of them. Exit 3 if nothing is locked yet. docs/statistics.md says what
        the figures rest on.""",
    ),
    Verb(
        "replay",
        "embed a recorded version again: do its numbers hold?",
        "replay:replay",
        "replay demo",
        f"""[SOURCE]   {_NAMES}; or --encoder
        {_EVAL_SET}
        --rehearse   the rehearsal's results
        --encoder NAME   in place of SOURCE: compare this encoder of the catalog
        --json   the report as JSON
        {_WHERE}""",
        description="""Embeds a decided version (or, with --rehearse, the rehearsal's results) once more from its
        archived corpus and scores it with its recorded labels: cell by cell nDCG@10 then and now, the difference with
        its paired bootstrap interval, and whether that is more than noise. Vectors made before are not used, and the
        version is only read.

        With --encoder instead: the sentences of the probe, embedded by that encoder on Modal or a server and on this
        machine, and the vectors compared.""",
    ),
    Verb(
        "fetch",
        "documents of a source from its publisher",
        "fetch:fetch",
        "fetch bills --to bills --size 750",
        """SOURCE   bills, us_code, federal_register, ...
        --to FOLDER!   a new folder, or one that a fetch began to fill
        --size N=750   documents wanted, 750; some more are drawn
        --seed N=2026   of the draw, 2026
        --since DATE   published on or after YYYY-MM-DD
        --until DATE   published on or before YYYY-MM-DD
        --congress N...   of this Congress
        --option WORD...   an option of the source's reader
        --again FILE   a version's corpus.jsonl: its documents and no others
        --max-mb N=500   most that the folder may hold, 500""",
        """govinfo's API takes a key of api.data.gov from the environment: PER_SOURCE_EVAL_GOVINFO_KEY. docs/sources.md
        says what each feed lists. A run that was stopped goes on with the same files when it is run again.""",
        """Downloads a source's documents from its official publisher into a folder, for --corpus-path: a seeded,
        stratified draw of what is published, or with --again the documents of a manifest, each held to the manifest's
        digest.""",
    ),
)

GROUPS["Tools"] = (
    Verb(
        "grade",
        """Grades a retriever against null systems. Either a bench, one JSON object {"retrieved": [...], "gold": ...,
        "rel": 3} a line with a pool of all ids that could have been retrieved (one a line, or a JSON array), or a TREC
        run with its qrels""",
        "grade:grade",
        "grade --demo",
        """| -i --input FILE   bench, or - for standard input; needs --pool
        | --run FILE   TREC run, or -; needs --qrels
        | --demo   the story of a student who always answers C
        | --sample FOLDER   write the bench of that story, and its pool, to try it on
        | --case-study FOLDER   BM25 and cheaters on a collection in BEIR's layout
        | --playground FILE   write a page on which to play with the gate
        --qrels FILE   TREC qrels, or -
        -p --pool FILE   all ids, or -; by default those of run and qrels
        -m --metric NAME   of a bench: ndcg@K, recall@K or mrr@K; ndcg@5
        --n-trials N   draws of each null, 1000
        --tau X   least distance to each null, 0.05
        --seed N   of the draws, 2026
        --json   one JSON object and nothing else""",
        """Answers are exchanged within a row's optional "stratum". A run's verdict is on nDCG@10 with graded qrels.
        exit codes: 0 the gate is passed, or done; 1 it is not (fail or insufficient), 2 usage or input, 5 disk""",
    ),
    Verb(
        "doctor",
        """Without SOURCE examines the installation: Python and packages against the pins, folders, the packaged
        encoder, the parts of an evening, and defects planted on purpose, each of which must be caught. Needs no network
        and leaves nothing behind.

        With SOURCE looks, at no cost, at what would end its evening: documents, the account, the model hub and each
        encoder's revision, disk, the judges' keys, and one total against --max-usd. A run looks at the same by itself.
        With --yes, and if nothing is red, each encoder embeds a few sentences and each judge grades one pair as a run
        would: that is charged""",
        "doctor:doctor",
        "doctor --quick",
        f"""[SOURCE]   {_NAMES}; without it: the installation
        {_EVAL_SET}
        --quick   of the installation, leave out what loads the model, some 2 seconds
        --corpus-path PATH   the version's documents, or others to draw a sample of
        --rehearse   the rehearsal's plan
        --try   of the trial
        --yes   try encoders and judges in earnest, and spend the money
        --json   the outcomes as JSON
        {_WHERE}{_MODELS.format("look at the plan's too")}""",
    ),
    Verb(
        "mcp",
        "Serves the Model Context Protocol on standard input and output. A client starts it",
        "tools:mcp",
        "mcp --root eval-sets",
        "--root FOLDER   files are read below it; default ./eval-sets",
        """Tools: grade_retrieval, compare_runs, explain_decision, dry_run; all read-only. Files are read below --root
        and in the checkout's eval-sets alone. Standard output carries the protocol, standard error everything else.""",
    ),
)

GROUPS["Governance"] = (
    Verb(
        "verify",
        "Checks a version against its locks, or a folder against the lock of its files",
        "version:verify",
        "verify demo",
        f"""SOURCE   {_NAMES}; a folder, with --lock
        {_EVAL_SET}
        --deep   make results, page and decision anew, and compare
        --lock FILE   what `lock DIR` wrote: SOURCE is that folder
        --json   with --lock: the answer as JSON""",
        """Every digest that one file holds of another is compared too. Who can write every file can forge them all:
        --deep makes results.json, page and decision anew from the runs and labels. What no lock shows is who gave the
        labels, and that nothing was locked before. A file that no lock holds is named, and nothing rests on it; only a
        folder's --lock and a report's make it exit 4.""",
    ),
    Verb(
        "bulk-gate",
        "whether a source of N documents may be embedded",
        "standing:bulk_gate",
        "bulk-gate demo 9000",
        f"{_VERSION}N   how many documents the source has",
        "exit codes: 0 open, 1 closed: above 10,000 documents a decision is needed",
    ),
    Verb(
        "embed",
        "carry a decision out: index every document",
        "version:embed",
        "embed demo --corpus-path corpus --to demo.db",
        f"""{_VERSION}
        --corpus-path PATH   all documents of the source: a folder, a ZIP or a database
        --to PATH!   FILE.db for SQLite, else a folder of Parquet shards; one that is there goes on
        --prune   remove documents that are gone, which are marked otherwise
        --check   hold the index to decision and encoder in place of writing
        --rehearse   carry the rehearsal's decision out
        {_WHERE}""",
        """Run again, it embeds what is new or changed. docs/embed.md""",
        """Cuts and embeds the documents as the decided cell does, into the schema that `post-bulk` reads, or into
        Parquet.""",
    ),
    Verb(
        "post-bulk",
        "a decision against the production database",
        "version:post_bulk",
        "post-bulk demo --corpus-path substrate.db",
        f"""{_VERSION}
        --corpus-path FILE!   the production database; it is only read
        --rehearse   hold the rehearsal's decision to it""",
        "Writes a report beside the record.",
    ),
    Verb(
        "version",
        "open the version after the newest, or give the newest up",
        "version:version",
        "version demo --reason 'new queries' --by 'A. Person'",
        f"""[SOURCE]   {_NAMES}; none with --all
        {_EVAL_SET}
        --abandon   give up the newest version, which is undecided
        --confirm   compare the cell that was chosen with the baseline alone, over new queries
        --encoder NAME...   add the cells of this encoder of the catalog, beside the cell that was chosen
        --all   with --encoder: of every decided source; prints what it costs
        --yes   with --all: then open them
        --rehearse   with --confirm or --encoder: what the rehearsal chose
        --reason TEXT=   why; kept in opened.json or abandoned.json
        --by NAME=   who decides; it is recorded""",
        "What was decided cannot be given up. docs/new-version.md is the path from an exploration to v2.",
    ),
    Verb(
        "lock",
        "Locks the files of a folder by SHA-256",
        "lock:lock",
        "lock bench -o bench.lock.json",
        """FOLDER   whose files are locked
        -o --output FILE!   a new file""",
        """Every file below the folder counts; a lock inside does not lock itself, and .git is left to git. A symbolic
        link is locked by its text.""",
    ),
    Verb(
        "tripwire",
        "Fires when a change makes golden queries worse than their committed snapshot",
        "tools:tripwire",
        "tripwire check GOLDEN.yaml --run RUN.tsv.bz2 --snapshot SNAPSHOT.json",
        """check|update   compare, or write the snapshot
        GOLDEN   golden queries, YAML
        --run FILE!   a cell's run (runs/CELL.tsv.bz2) or a TREC run
        --snapshot FILE!   the committed snapshot, JSON
        --k N=5   Hit@K's cutoff (default 5)
        --limit N=10   documents kept a query, over which MRR runs (10)
        --tolerance X=0.02   a fall that is let pass (0.02)
        --json   the answer as JSON""",
        """GOLDEN is a YAML list of {name, text, expected: [ids]}; in a run, a query's id is its name. `update` takes
        the same arguments and writes the snapshot, of which git shows what changed; --tolerance does nothing there.
        exit codes: 0 nothing fell (or the snapshot is written), 1 the tripwire fired, 2 usage or input error (a query
        added, deleted or edited, another k or limit, a query that the run lacks), 4 a locked run changed, 5 disk.""",
    ),
)

VERBS: dict[str, Verb] = {verb.name: verb for verbs in GROUPS.values() for verb in verbs}

_SCREEN = f"""\
per-source-eval: choose the embedding model and chunker for a source, with evidence.

{{groups}}
Examples
  {DRIVER} run bills --corpus-path ~/bills
  {DRIVER} run bills --judge
  {DRIVER} --source=bills --dry-run    for a determiner: last line "decision recorded"

VERB --help explains each. Exit codes: {EXIT_CODES}."""

_COMPACT = ("Tools", "Governance")


def one_screen() -> str:
    """Return the help that fits on one screen: a line per verb, tools and governance by name."""
    lines = []
    for title, verbs in GROUPS.items():
        lines.append(title)
        own = [verb for verb in verbs if " " not in verb.name]  # actions stand in their verb's help
        if title in _COMPACT:
            lines.append(f"  {', '.join(verb.name for verb in own)}")
        else:
            lines += [f"  {f'{verb.name} {_form(verb)}'.strip():22} {verb.does}" for verb in own]
        lines.append("")
    return _SCREEN.format(groups="\n".join(lines))


def _form(verb: Verb) -> str:
    """Return what stands behind a verb: its arguments that are no flags."""
    if not verb.function:
        return "ACTION SOURCE"
    # Positional arguments are written in capitals, flags and headings are not.
    forms = (line.strip().partition("   ")[0] for line in verb.arguments.splitlines())
    return " ".join(form.replace("...]", "]").removesuffix("...") for form in forms if form.strip("[]. ").isupper())


def actions(name: str) -> dict[str, Verb]:
    """Return the actions of a verb by their own word; none for most verbs."""
    return {full.split()[1]: verb for full, verb in VERBS.items() if full.startswith(f"{name} ")}


def actions_help(name: str) -> str:
    """Return the help of a verb that has actions: a line per action."""
    own = actions(name)
    lines = [f"usage: {DRIVER} {name} {'|'.join(own)} SOURCE ...", "", f"{VERBS[name].does}.", ""]
    lines += [f"  {action:10} {verb.does}" for action, verb in own.items()]
    return "\n".join([*lines, "", f"Each has its own help: {DRIVER} {name} {next(iter(own))} --help"])


def near(word: str, known: Sequence[str]) -> str:
    """Return what a misspelt word may have meant, as the end of a sentence; "." if nothing is near."""
    from difflib import get_close_matches

    nearest = get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean {nearest[0]!r}?" if nearest else "."


def found_verb(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the verb that a command line begins with, and the words behind it; InputError for an unknown one."""
    name, rest = words[0], words[1:]
    if name not in VERBS:
        known = [verb for verb in VERBS if " " not in verb]
        raise InputError(f"There is no verb {name!r}{near(name, known)} All of them: {DRIVER} --help")
    if VERBS[name].function:
        return name, rest
    # A verb without a function has actions, of which the next word names one.
    own = actions(name)
    if not rest or rest[0] not in own:
        given = f"no action {rest[0]!r}{near(rest[0], list(own))}" if rest else "no action without its name."
        raise InputError(f"{name} has {given} There are: {', '.join(own)}.")
    return f"{name} {rest[0]}", rest[1:]


def command_of(name: str) -> "Command":
    """Return a verb's function."""
    module, _, function = VERBS[name].function.partition(":")
    command: Command = getattr(importlib.import_module(f"runner.commands.{module}"), function)
    return command
