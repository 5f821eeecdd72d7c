"""What the package gives to Python, for type checkers: the module imports it when it is asked for."""

from runner.score.power import cohens_d as cohens_d
from runner.score.power import needed_n as needed_n
from runner.substrate.open_index import open_index as open_index
from runner.tools.evaluate import Evaluation as Evaluation
from runner.tools.evaluate import evaluate as evaluate

__version__: str
