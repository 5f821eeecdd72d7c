"""What pairs leave open that were all graded alike, or all otherwise: no bootstrap of them shows any doubt."""

from runner.decide.tiers import whole_percent


def unseen(pairs: int, confidence: float) -> float:
    """The greatest share that so many pairs without one case leave possible: Clopper & Pearson's bound, one-sided.

    It counts pairs as independent; near 3 / pairs at 95 % (the rule of three).

    >>> round(unseen(60, 0.95), 4)
    0.0487
    """
    all_seen: float = (1 - confidence) ** (1 / pairs)
    return 1 - all_seen


def left_open(same: int, pairs: int, confidence: float) -> str:
    """What pairs say of which all or none were graded alike; "" where some were and some were not, or without pairs.

    >>> left_open(60, 60, 0.95)
    'none of 60 pairs was graded otherwise: up to 5 % of pairs may be (95 %)'
    """
    if not pairs or 0 < same < pairs:
        return ""
    counted = f"{pairs:,} pair{'' if pairs == 1 else 's'}"
    possible = f"up to {whole_percent(unseen(pairs, confidence))} of pairs may be ({100 * confidence:g} %)"
    return f"none of {counted} was graded {'otherwise' if same else 'alike'}: {possible}"
