"""A Hypothesis strategy for payoffs."""

from hypothesis import strategies as st

from tidegate.models import Payoff


def payoffs(longest: float = 50.0) -> st.SearchStrategy[Payoff]:
    """Concave, with ties, flat ends and segments of all sizes.

    Slopes are 0 or well above the rounding of the results, so that an end is flat or it rises.
    """
    lengths = st.integers(1, 20).map(float) | st.floats(0.1, longest)
    slopes = st.integers(0, 3).map(float) | st.floats(1e-6, 10)
    segments = st.lists(st.tuples(lengths, slopes), min_size=1, max_size=6)
    return segments.map(lambda some: Payoff.from_segments(*map(list, zip(*some, strict=True))))
