"""What rented machines may cost and have cost.

In: planned tokens, dated price lists, the ceiling of --max-usd. Out: an estimate before the run, a meter that stops
it at the ceiling, a ledger of what was spent, and the receipt's account of it.
It must not know which provider answers: it reads prices from its own tables and asks nobody.
"""

MAX_USD = 10.0
"""The ceiling of a version without --max-usd; a default plan of 25 queries fits it."""
