"""A slow, exact simulation of one stream under the priority rule, to compare with the theory.

One row arrives at each whole time; a row that is held at time t yields p(k) results until t + 1, where k is
its age then. Everything is in fractions, so that ties are ties.
"""

from collections.abc import Sequence
from fractions import Fraction


def cumulative(rates: Sequence[int]) -> list[int]:
    """C at the ages 0, 1, ..., W."""
    return [sum(rates[:age]) for age in range(len(rates) + 1)]


def priority(rates: Sequence[int], age: int) -> Fraction:
    """The paper's formula, by trying every later age."""
    c = cumulative(rates)
    return max((Fraction(c[j] - c[age], j - age) for j in range(age + 1, len(c))), default=Fraction(0))


def best_age(rates: Sequence[int]) -> int:
    """The largest age that maximises C(k)/k."""
    c = cumulative(rates)
    return max(range(1, len(c)), key=lambda age: (Fraction(c[age], age), age))


def run(rates: Sequence[int], memory: int, steps: int) -> tuple[list[set[int]], list[int]]:
    """The arrivals that are buffered after each step, and the results until the next."""
    ranks = [priority(rates, age) for age in range(len(rates) + 1)]
    held: set[int] = set()
    history, results = [], []
    for now in range(1, steps + 1):
        held = {row for row in held if now - row < len(rates)} | {now}
        # Among rows of equal priority, the newest stays.
        held = set(sorted(held, key=lambda row: (ranks[now - row], row))[-memory:])
        history.append(held)
        results.append(sum(rates[now - row] for row in held))
    return history, results
