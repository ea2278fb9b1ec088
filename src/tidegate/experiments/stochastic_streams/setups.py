"""The streams of the experiments, and the policies with their parameters for each stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from tidegate.models import LinearTrend, Noise, RandomWalk
from tidegate.policies import (
    Exponential,
    Fifo,
    FlowExpect,
    Heeb,
    HeebHistogram,
    Life,
    Offline,
    Policy,
    Prob,
    Random,
)

KeyProcess: TypeAlias = LinearTrend | RandomWalk


class Setup(NamedTuple):
    """The processes of the two streams."""

    left: KeyProcess
    right: KeyProcess

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The bounds of the noise of both streams. Walks have none."""
        if not self.lines:
            return None
        left, right = (line.noise.bound for line in self.lines.values())
        return None if left is None or right is None else (left, right)

    @property
    def lines(self) -> dict[str, Any]:
        """The lines that keys follow on both sides, which show a policy which rows cannot match any more."""
        if isinstance(self.left, RandomWalk) or isinstance(self.right, RandomWalk):
            return {}
        return {"left": self.left, "right": self.right}


def trends(
    sigmas: tuple[float | None, float | None], *, lag: float = 1.0, bounds: tuple[float, float] = (10, 15)
) -> Setup:
    """Two trends of speed 1, with R behind S. A sigma gives normal noise, None uniform noise."""
    left, right = (Noise(bound, sigma) for bound, sigma in zip(bounds, sigmas, strict=True))
    return Setup(LinearTrend(1.0, -lag, left), LinearTrend(1.0, 0.0, right))


CALM, NOISY = "low variance", "high variance"
STEP: Final = RandomWalk(0.0, Noise(sigma=1.0))
SETUPS: Final[dict[str, Setup]] = {
    "TOWER": trends((1.0, 2.0)),
    "ROOF": trends((3.3, 5.0)),
    "FLOOR": trends((None, None)),
    "WALK": Setup(STEP, STEP),
    CALM: trends((1.0, 1.0)),
    NOISY: trends((8.0, 8.0)),
}
COMPARED: Final = ("TOWER", "ROOF", "FLOOR", "WALK")
DRIFTING: Final = ("TOWER", "ROOF", "FLOOR")
ALIKE: Final = "alike"
DIVIDED: Final[dict[str, Setup]] = {
    ALIKE: trends((1.0, 1.0), lag=0, bounds=(10, 10)),
    "R lags by 2": trends((1.0, 1.0), lag=2, bounds=(10, 10)),
    "R lags by 4": trends((1.0, 1.0), lag=4, bounds=(10, 10)),
    "S varies by 2": trends((1.0, 2.0), lag=0, bounds=(10, 10)),
    "S varies by 4": trends((1.0, 4.0), lag=0, bounds=(10, 10)),
}
"""Pairs of streams, with an increasing disadvantage for one of them."""

MEMORIES: Final = (1, 5, 10, 20, 50)
MEMORY: Final = 10
WARMUP: Final = 4 * max(MEMORIES)
ROWS, RUNS = 5000, 50
"""The length of a stream and the runs of an experiment, in the paper."""
COUNTED: Final = 1 << 16
"""A capacity that counts every key exactly."""


def survival(setup: Setup, memory: int) -> Exponential:
    """A survival of half of the sum of both bounds. For walks, alpha is the memory."""
    return Exponential(memory) if setup.bounds is None else Exponential.from_lifetime(sum(setup.bounds) / 2)


POLICIES: Final[dict[str, Callable[[Setup, int], Policy | None]]] = {
    "offline": lambda _, __: Offline(),
    "flow_expect": lambda setup, _: FlowExpect(setup.left, setup.right),
    "heeb": lambda setup, memory: Heeb(setup.left, setup.right, survival=survival(setup, memory)),
    "heeb_histogram": lambda setup, _: HeebHistogram("mean" if setup.lines else "last"),
    "random": lambda setup, _: Random(**setup.lines),
    "prob": lambda setup, _: Prob(capacity=COUNTED, **setup.lines),
    "life": lambda setup, _: Life(capacity=COUNTED, **setup.lines) if setup.lines else None,
    "fifo": lambda _, __: Fifo(),
}
"""The policy for some streams and a memory. None if it cannot run on them."""
FAST: Final = tuple(name for name in POLICIES if name != "flow_expect")
"""All policies that do not solve a plan in every step."""
RIVALS: Final = ("random", "prob", "life")


def possible(stream: str, policy: str) -> bool:
    """Whether a policy can run on a stream. Walks have no window for `life`."""
    return POLICIES[policy](SETUPS[stream], MEMORY) is not None
