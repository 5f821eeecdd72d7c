"""`smoke`: whether embedding on Modal works with this account, tried on 32 texts."""

from collections.abc import Sequence
from datetime import UTC, datetime

from runner.base.errors import InputError, NegativeVerdict
from runner.base.progress import say
from runner.commands.console import answer, command_parser
from runner.commands.flags import add_modal_flags, modal_backend, remote_options
from runner.eval_set import catalog
from runner.eval_set.version import CHECKOUT
from runner.tools.doctor.parity import TEXTS, came_back, compared, embedded, parity_line

_DESCRIPTION = """\
Embeds 32 fixed texts on Modal, as a run would: the app, the image, the weights, the probe. Says what came back and what
it costs by list price, and compares with this machine where the encoder's weights are here, as `doctor --parity` does.
"""
_EPILOG = """\
It spends some cents, on the account of MODAL_TOKEN_ID and MODAL_TOKEN_SECRET or of `modal token new`; hence --yes.
exit codes: 0 it works, 1 the vectors are not those of this machine, 2 usage, 5 Modal, the budget or the disk
"""


def smoke(arguments: Sequence[str]) -> int:
    """0 if the texts came back; a NegativeVerdict if their vectors are not those of this machine."""
    parser = command_parser("smoke", _DESCRIPTION, _EPILOG)
    parser.add_argument("--yes", action="store_true", help="spend the money")
    parser.add_argument("--encoder", default="minilm-l6-v2", metavar="NAME", help="of the catalogue, minilm-l6-v2")
    add_modal_flags(parser, containers=1, max_usd=1.0)
    options = parser.parse_args(arguments)
    remote = remote_options(options)
    assert remote is not None, "--modal is required"
    spec = catalog.encoder(options.encoder)
    if not options.yes:
        raise InputError(
            f"This embeds {TEXTS} texts with {spec.name} on {remote.gpu} and is charged by the second "
            f"(${remote.price:.6f} by list price, {remote.max_usd:.2f} at most). Add --yes."
        )
    from runner.embed.weights import is_here

    now = datetime.now(UTC)
    folder = CHECKOUT / ".work" / "smoke" / now.strftime("%Y-%m-%dT%H%M%SZ")
    with modal_backend(remote, folder) as backend:
        say("the first run on Modal builds the image and fetches the weights, which takes minutes")
        found = next(compared(backend, [spec.name], now.date().isoformat())) if is_here(spec) else None
        served = embedded(backend, spec.name) if found is None else found.served
    answer("\n".join([*came_back(spec, served, backend), parity_line(found)]))
    if found is not None and not found.passed:
        failed = "; ".join(f"{check.name}: {check.said}" for check in found.checks if not check.passed)
        raise NegativeVerdict(f"{spec.name} on Modal does not make the vectors of this machine. {failed}")
    return 0
