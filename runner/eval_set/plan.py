"""The plan of a version: default plans from the catalog, and the acceptance criteria as errors of loading.

Criterion numbers are those of the per-source evaluation spec.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from runner.base.canonical import digest, slug, write_atomic
from runner.base.errors import EvalError, InputError, PlanError
from runner.base.plain_yaml import read_yaml
from runner.base.records import BM25Cell, CrossCell, DenseCell, HybridCell, OwnCell, parse_cell
from runner.eval_set import catalog
from runner.eval_set.catalog import NO_OWN, EncoderSpec, SourceSpec
from runner.eval_set.door import held
from runner.eval_set.encoder_blocks import BLOCK, encoder_problems, shape_problems
from runner.eval_set.kinds import is_of_vectors, near_copies
from runner.eval_set.mix import mix_problems
from runner.eval_set.shapes.labels import APIS, Judges, undated
from runner.eval_set.shapes.plan import Normal, Plan, PlanDigest, Prior, Rule

MIN_DENSE_CELLS = 6
MIN_QUERIES = 25
POOL_DEPTH = 10
"""Of every new plan, and the least: nDCG@10 counts the first 10 hits, and each of them has to be judged."""

DEFAULT_SEED = 2026
"""Of every new plan's sample."""

RULE = Rule(min_gain=0.02, max_recall_loss=0.02)
"""Criterion 5's values: a rehearsal may try others, and a plan that decides has these."""

_SETTINGS = """\
rule: {min_gain: 0.02, max_recall_loss: 0.02}
bootstrap: {resamples: 10000, confidence: 0.95, seed: 2026}
significance: {method: "phantom t v1", draws: 100000, alpha: 0.05, seed: 2026}
null_gate: {nulls: "graded v1", draws: 2000, tau: 0.05, alpha: 0.05, seed: 2026}
"""

JUDGES = """\
judges:
  first: {api: anthropic, model: claude-sonnet-4-6}
  second: {api: anthropic, model: claude-opus-4-6, share: 0.1}
"""
"""Whom `judge` asks: the models of the first phase's judges, which still take a temperature of 0."""

EVIDENCE = "evidence: {{chars: {chars}, encoder: minilm-l6-v2}}\n"
SWITCHING = "switching_cost: 0.02 # what `recommended` asks of an expected gain; more switches less often\n"

UNKNOWN = Prior(kinds=dict.fromkeys(catalog.PRIOR, Normal(mean=0.0, sd=0.2)))
"""So wide that what is measured counts nearly alone."""

DEFAULT_PRIOR = Prior(kinds=catalog.PRIOR)
"""What is believed of challengers while fewer than four other sources have results."""

EXTERNAL_CELLS = (
    *(f"{variant} x whole_doc" for variant in ("bm25", "bm25-plain", "bm25-okapi")),
    *(f"minilm-l6-v2 x {chunker}" for chunker in ("whole_doc", "fixed_token_256_25")),
    "minilm-static-384 x whole_doc",
    "bm25>minilm-l6-v2 x whole_doc",
    "sum(bm25,minilm-l6-v2) x whole_doc",
)
"""Whole documents, as published figures have them, and one chunked cell; the first is the baseline."""


def default_cells(source: SourceSpec, *, rehearsal: bool) -> list[str]:
    """Return the default matrix: the hub's encoders, or the packaged ones for a rehearsal and beside such a baseline.

    First stands the baseline, then its encoder with the source's structural chunker, which cuts what MiniLM would not
    read, or with windows of 512 tokens if the structural one is the baseline's. At most 12 cells, but for those of the
    source's own `encoders`.
    """
    if source.policy == "external":
        return list(EXTERNAL_CELLS)
    structural = source.structural_chunker
    fixed, path = "fixed_token_512_50", "fixed_path_512_50"
    baseline = "" if rehearsal and not catalog.is_packaged(source.baseline) else source.baseline
    if rehearsal or catalog.is_packaged(source.baseline):
        from chunkers.registry import cut_at  # it brings numpy, which who only lists versions does without

        best, path = "minilm-l6-v2", "fixed_path_256_25"
        cut = cut_at(structural, catalog.encoder(best).max_tokens)
        chunkers = dict.fromkeys((fixed, cut, "fixed_token_256_25", structural, "fixed_token_1024_100"))
        dense = [f"{best} x {name}" for name in [*chunkers][:4]]
        dense += [f"minilm-static-384 x {name}" for name in (fixed, structural)]
        structural = cut
    else:
        dense = [
            *(f"arctic-l-v2.0 x {name}" for name in (fixed, structural, "fixed_token_1024_100")),
            *(f"mxbai-large-v1 x {name}" for name in (fixed, structural)),
            *(f"nomic-v1.5 x {name}" for name in (fixed, "fixed_token_1024_100")),
            f"mpnet-base-v2 x {fixed}",
        ]
        best = "arctic-l-v2.0"
    cells = [
        *dict.fromkeys(dense),
        "bm25 x whole_doc",
        *([f"bm25>{best} x {structural}"] if source.citation_heavy else []),
        f"sum(bm25,{best}) x {structural}",
        *([f"sum(bm25,{best}) x {path}"] if source.by_path else []),
    ]
    for encoder in () if rehearsal else source.encoders:
        own = encoder_cells(encoder, source.baseline, source.structural_chunker)
        cells += [cell for cell in own if cell not in cells]
    if not baseline:
        return cells
    leading = [baseline, f"{baseline.partition(' x ')[0]} x {structural}"]
    return [
        *dict.fromkeys(cell for cell in leading if cell in (baseline, *cells)),
        *(cell for cell in cells if cell not in leading),
    ]


def encoder_cells(encoder: str, baseline: str, structural: str) -> list[str]:
    """Return the cells that try an encoder: over the baseline's chunks, over structural ones that it reads whole, and
    with words summed over these.
    """
    from chunkers.registry import cut_at  # it brings numpy, which who only lists versions does without

    cut = cut_at(structural, catalog.encoder(encoder).max_tokens)
    chunkers = dict.fromkeys((baseline.rpartition(" x ")[2], cut))
    return [*(f"{encoder} x {name}" for name in chunkers), f"sum(bm25,{encoder}) x {cut}"]


def first_cells(cells: Sequence[str]) -> list[str]:
    """Return those of a default matrix that are tested first: words and meaning summed over the structural chunks, and
    these chunks alone, or what stands after the baseline if they are the baseline's.
    """
    summed = next((cell for cell in cells[1:] if cell.startswith("sum(")), cells[1])
    alone = summed.removeprefix("sum(bm25,").replace(") x ", " x ")
    return [*dict.fromkeys([summed, alone if alone in cells[1:] else cells[1]])]


def default_plan_text(
    source: SourceSpec,
    *,
    rehearsal: bool,
    version: int = 1,
    prior: Prior | None = None,
) -> str:
    """plan.yaml as a new version gets it; a person may edit it until the preregistration.

    `prior` is what other sources' results say of the kinds of cell; None for what is believed without any.
    """
    cells = default_cells(source, rehearsal=rehearsal)
    prior = prior or prior_over(cells[0])
    external = source.policy == "external"
    if external:
        head = "What is compared with the first cell; edit it and run again. Nothing is decided."
    elif rehearsal:
        head = "A rehearsal: same corpus, queries and labels as the production plan, other cells. Never a decision."
    else:
        head = "What this version compares. Frozen by preregistration.json when the first pair goes to a judge."
    listed = "\n".join(f'  - "{cell}"' for cell in cells)
    tested_first = "" if external else ", ".join(f'"{cell}"' for cell in first_cells(cells))
    first = f"first: [{tested_first}]\n" if tested_first else ""
    # A comment, and so no part of what is frozen: the decision says what is known of the sibling by then.
    reuse = f"# {source.structural_chunker} is taken over from {source.reuses}; the decision has its result there.\n"
    breadth = documents = ""
    if source.fields is not None:
        structural = source.structural_chunker
        breadth = (
            f"# At least {MIN_DENSE_CELLS} cells of a model and a chunker, one of them {structural}, and one of BM25.\n"
        )
        documents = f", documents: {{{', '.join(f'{name}: {field}' for name, field in source.fields)}}}"
    choice = "" if external else JUDGES + EVIDENCE.format(chars=source.evidence) + SWITCHING + prior_text(prior)
    return f"""\
# {head}
schema_version: 1
source: {source.name}
version: {version}
baseline: "{cells[0]}"
{breadth}cells:
{listed}
{first}sample: {{size: {source.sample_size}, seed: {DEFAULT_SEED}{documents}}}
{reuse if source.reuses else ""}{choice}pool_depth: {POOL_DEPTH}
relevant_grade: {1 if external else 2}
{_SETTINGS}"""


def prior_over(baseline: str) -> Prior:
    """Return what is believed of gains over a baseline where no other source's locked results say it.

    The catalog's figures were measured over vectors, of an encoder with layers; over any other baseline next to nothing
    is known.
    """
    return DEFAULT_PRIOR if is_of_vectors(baseline) else UNKNOWN


def prior_text(prior: Prior) -> str:
    """Return the block of plan.yaml in which the prior is frozen."""
    rows = "".join(f"    {kind}: {{mean: {one.mean:g}, sd: {one.sd:g}}}\n" for kind, one in prior.kinds.items())
    taken = f"  from_results: [{', '.join(prior.from_results)}]\n" if prior.from_results else ""
    return f"prior:\n  kinds:\n{rows}{taken}"


def load_plan(path: Path, source: SourceSpec, version: int, *, rehearsal: bool) -> Plan:
    """Return the plan at `path`; a PlanError names every criterion that it breaks, all at once."""
    plan = read_plan(path)
    if broken := plan_problems(plan, path, source, version, rehearsal=rehearsal):
        raise PlanError(str(path), broken)
    return plan


def plan_problems(plan: Plan, path: Path, source: SourceSpec, version: int, *, rehearsal: bool) -> list[str]:
    """Return every criterion that the plan of `path` breaks, and whatever else keeps it from being run."""
    problems = []
    if plan.source != source.name:
        problems.append(f"source: the plan is for {plan.source!r}, this version is of {source.name!r}")
    if plan.version != version:
        problems.append(f"version: the plan is for v{plan.version}, this is v{version}")
    return [
        *problems,
        *_option_problems(plan, source),
        *_judge_problems(plan.judges),
        *mix_problems(plan.mix),
        *encoder_problems(plan, path),
        *_cell_problems(plan, source, rehearsal=rehearsal),
    ]


def read_plan(path: Path) -> Plan:
    """Return the plan as the file has it, whether or not it meets the criteria; a PlanError names every wrong field.

    Kinds of cell that its prior leaves out have the catalog's figures, so that those are frozen and recorded as well.
    """
    try:
        return plan_of(read_yaml(held(path)))
    except ValidationError as error:
        raise PlanError(str(path), shape_problems(error, path)) from error


def plan_of(fields: object) -> Plan:
    """Return the plan of these fields, its prior completed by `prior_over`; pydantic's error if one is wrong.

    A block of an encoder that the catalog has without a revision is completed from its row.
    """
    plan = Plan.model_validate(_with_rows(fields))
    kinds = prior_over(plan.baseline).kinds | plan.prior.kinds
    return plan.model_copy(update={"prior": plan.prior.model_copy(update={"kinds": kinds})})


def _with_rows(fields: object) -> object:
    blocks = fields.get("encoders") if isinstance(fields, dict) else None
    if not isinstance(fields, dict) or not isinstance(blocks, dict):
        return fields
    rows = {name: catalog.ENCODERS[name] for name in blocks if name in catalog.ENCODERS}
    made = {
        name: {**row.model_dump(), "name": name, **blocks[name]}
        for name, row in rows.items()
        if not (row.revision or row.excluded) and isinstance(blocks[name], dict)
    }
    return {**fields, "encoders": {**blocks, **made}}


def unpinned(plan: Plan) -> list[EncoderSpec]:
    """Return the catalog's encoders of the plan's cells whose commit neither the catalog nor the plan says."""
    named = {getattr(parse_cell(cell), "encoder", "") for cell in plan.cells} - plan.encoders.keys()
    rows = [catalog.ENCODERS[name] for name in sorted(named & catalog.ENCODERS.keys())]
    return [row for row in rows if not (row.revision or row.excluded)]


def pin(path: Path, commits: Mapping[str, str]) -> None:
    """Write the commits of encoders into the plan's `encoders:`; InputError, and the plan as it was, if that fails."""
    before = path.read_text()
    rows = "".join(f"  {name}: {{revision: {commit}}}\n" for name, commit in commits.items())
    opened = re.search(rf"^{BLOCK}:[ \t]*(?:#.*)?\n", before, re.MULTILINE)
    place = opened.end() if opened else len(before)
    block = "" if opened else f"{BLOCK}: # commits of the model hub, as they were when each was first used\n"
    write_atomic(path, f"{before[:place]}{block}{rows}{before[place:]}".encode())
    try:
        read = {name: spec.revision for name, spec in read_plan(path).encoders.items()}
    except EvalError:
        read = {}
    if {name: read.get(name) for name in commits} != commits:
        write_atomic(path, before.encode())
        raise InputError(f"{path}: its {BLOCK} could not be added to. Write below {BLOCK}:\n{rows}and run again.")


def plan_digest(plan: Plan) -> PlanDigest:
    """Return what a preregistration freezes: the rule with every setting that moves a verdict, baseline and cells."""
    # Cells may be added later as exploratory ones, so they are listed and not digested.
    rule = plan.model_dump(exclude={"cells", "baseline"})
    return PlanDigest(rule_sha256=digest(rule), baseline=plan.baseline, cells=list(plan.judged_cells))


def _judge_problems(judges: Judges | None) -> list[str]:
    unknown = [spec.api for spec in judges.each if spec.api not in APIS] if judges else []
    if unknown:
        return [f"judges: there is no api {unknown[0]!r}; write {' or '.join(APIS)}"]
    if judges is None or judges.second is None or judges.second.by_file:
        return []
    if undated(judges.first.model) != undated(judges.second.model):
        return []
    return ["judges: the second judge must be another model than the first, unless it answers by file (api: files)"]


def _option_problems(plan: Plan, source: SourceSpec) -> list[str]:
    if source.fields is None and plan.sample.documents is not None:
        return [f"sample.documents: {source.name} is a source of the roster, whose reader needs no fields"]
    if source.fields is not None and plan.sample.options:
        return ["sample.options: documents of your own have none; name fields in sample.documents"]
    if not plan.sample.options:
        return []
    from samplers.registry import source_format

    known = source_format(source.reader).options
    listed = "; ".join(f"{name}: {meaning}" for name, meaning in known.items()) or "none"
    return [
        f"sample.options: {source.name} has no option {name!r}; it has {listed}"
        for name in plan.sample.options
        if name not in known
    ]


def _cell_problems(plan: Plan, source: SourceSpec, *, rehearsal: bool) -> list[str]:
    # Every cell by itself: its form, its parts, its one way of writing.
    cells: list[OwnCell] = []
    problems = []
    for text in plan.cells:
        try:
            cell = parse_cell(text)
            check_cell(cell, plan.encoders)
        except InputError as error:
            problems.append(f"cells: {error}")
        else:
            if str(cell) != text:
                problems.append(f"cells: write {str(cell)!r} for {text!r}")
            cells.append(cell)
    problems += [
        f"cells: {text!r} is listed twice" for text in sorted({t for t in plan.cells if plan.cells.count(t) > 1})
    ]
    # Then cells beside each other: none twice, none in another's file.
    files = {slug(str(cell)): str(cell) for cell in cells}
    problems += [
        f"cells: '{cell}' and {files[slug(str(cell))]!r} would have one file; call one encoder otherwise"
        for cell in cells
        if files[slug(str(cell))] != str(cell)
    ]
    copies = near_copies(plan.cells)
    problems += [
        f"first: {text!r} is not a challenger; name cells of the plan beside the baseline, each once and none that "
        "stores another's vectors as @int8 or @bit, or leave it out"
        for text in plan.first
        if text not in plan.cells or text == plan.baseline or plan.first.count(text) > 1 or text in copies
    ]
    return problems + _criteria_problems(plan, cells, source, rehearsal=rehearsal)


def check_cell(cell: OwnCell, own: Mapping[str, EncoderSpec] = NO_OWN) -> None:
    """Raise InputError, which names the part that does not exist, unless the cell can be run; `own` are a plan's."""
    from chunkers.registry import chunker  # it brings numpy, which who only lists versions does without

    chunker(cell.chunker)
    if isinstance(cell, CrossCell):
        catalog.reranker(cell.model)
        return
    if isinstance(cell, BM25Cell):
        return
    # What is stored of vectors must be possible with the dimensions that they have.
    dim = catalog.encoder(cell.encoder, own).dim
    if isinstance(cell, DenseCell) and cell.variant.isdigit() and int(cell.variant) >= dim:
        raise InputError(
            f"{cell}: the vectors of {cell.encoder} have {dim} dimensions, so they cannot be cut to {cell.variant}. "
            f"Write a smaller number, or '{cell.encoder} x {cell.chunker}' for all of them."
        )
    if dim % 8 and isinstance(cell, DenseCell) and cell.variant == "bit":
        raise InputError(f"{cell}: sqlite-vec keeps bits of 8, 16, 24, ... dimensions, and {cell.encoder} has {dim}.")


def _criteria_problems(plan: Plan, cells: Sequence[OwnCell], source: SourceSpec, *, rehearsal: bool) -> list[str]:
    """Return what breaks a criterion; of a collection, which decides nothing, only the baseline is asked for."""
    if source.policy == "external":
        return [] if plan.baseline in plan.cells else [f"the baseline {plan.baseline!r} is not among the cells"]
    problems = []
    if plan.baseline not in plan.cells:
        problems.append(f"criterion 2: the baseline {plan.baseline!r} is not among the cells")
    if not rehearsal and plan.baseline != source.baseline:
        problems.append(
            f"criterion 2: the production baseline of {source.name} is {source.baseline!r}, not {plan.baseline!r}; "
            "a plan with another baseline is a rehearsal (rehearsal/plan.yaml, --rehearse), or decides in a folder of "
            "your own (init --baseline CELL --eval-set-path FOLDER)"
        )
    if not rehearsal and plan.rule != RULE:
        problems.append(
            f"criterion 5: a plan that decides asks for a gain of {RULE.min_gain:g} and a loss of "
            f"{RULE.max_recall_loss:g} at most; other values are a rehearsal's (rehearsal/plan.yaml, --rehearse)"
        )
    if plan.prior.kinds == DEFAULT_PRIOR.kinds and not is_of_vectors(plan.baseline):
        problems.append(
            f"prior: these figures are of gains over vectors, and {plan.baseline!r} is none of a model with layers; "
            "leave `prior:` out, and what is measured counts nearly alone"
        )
    if plan.confirms is None:
        problems += _breadth_problems(cells, source)
    if plan.incumbent and (plan.incumbent not in plan.cells or plan.incumbent == plan.baseline):
        problems.append(f"incumbent: {plan.incumbent!r} is not a challenger of the plan")
    if plan.confirms and (plan.confirms.cell not in plan.cells or plan.confirms.cell == plan.baseline):
        problems.append(f"confirms: {plan.confirms.cell!r} is not a challenger of the plan")
    if plan.pool_depth < POOL_DEPTH:
        problems.append(
            f"pool_depth: {plan.pool_depth}; at least {POOL_DEPTH}, so that every hit that nDCG@10 counts is judged"
        )
    return sorted(problems)  # by the number of the criterion


def _breadth_problems(cells: Sequence[OwnCell], source: SourceSpec) -> list[str]:
    """Return what the cells lack of criteria 1, 3 and 4, which a confirm version meets by the table that it cites."""
    from chunkers.registry import uncut

    # How vectors are stored makes no cell more.
    dense = [cell for cell in cells if isinstance(cell, DenseCell) and not cell.variant]
    problems = []
    if len(dense) < MIN_DENSE_CELLS:
        problems.append(f"criterion 1: {len(dense)} model x chunker cells; at least {MIN_DENSE_CELLS} are needed")
    if not any(isinstance(cell, BM25Cell) for cell in cells):
        problems.append("criterion 1: no BM25 cell; add 'bm25 x whole_doc'")
    if not any(uncut(cell.chunker) == source.structural_chunker for cell in dense):
        problems.append(f"criterion 3: no dense cell uses the structural chunker {source.structural_chunker}")
    if source.citation_heavy and not any(isinstance(cell, HybridCell) and cell.method == "rerank" for cell in cells):
        problems.append(
            f"criterion 4: {source.name} is citation-heavy and needs BM25 re-ranked by a dense arm; add a cell such as "
            f"'bm25>arctic-l-v2.0 x {source.structural_chunker}'"
        )
    return problems
