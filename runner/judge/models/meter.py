"""What judging through an API may cost, and has cost so far."""

from runner.embed.cost.ledger import Kind
from runner.embed.cost.request_meter import RequestMeter
from runner.judge.models.requests import Ask, Usage


class JudgeMeter(RequestMeter[Ask, Usage]):
    """A session's spending on one judge."""

    kind: Kind = "judge"
    doing = "judging"
