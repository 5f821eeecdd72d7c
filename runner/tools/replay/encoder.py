"""One encoder's vectors on a backend beside those of this machine."""

from runner.base.progress import say
from runner.embed.backends import Backend, Work
from runner.embed.local_encoder import encoder_for
from runner.embed.probe import PARAPHRASES, UNLIMITED, Beside, beside
from runner.embed.weights import verified_folder
from runner.eval_set import catalog

_LONG_TEXTS = 16
"""Of about the catalogued length, at most: three rounds of the probe's five, and the one that is compared."""


def compared(backend: Backend, name: str) -> Beside:
    """Return how the encoder's vectors there and here compare.

    Raise BackendError if the weights cannot be had here, before anything is started that costs money.
    """
    verified_folder(catalog.encoder(name))
    here, there = encoder_for(name), backend.encoder(name)
    sentences = 6 * len(PARAPHRASES) * 30
    tokens = _LONG_TEXTS * (here.spec.max_tokens or UNLIMITED) + sentences
    backend.prepare([Work(name, _LONG_TEXTS + 6 * len(PARAPHRASES), tokens)])
    say(f"{name}: the probe's sentences on {backend.name}, then here")
    return beside(here, there)
