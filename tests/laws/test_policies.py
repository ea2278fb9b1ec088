from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import tidegate as tg
from tidegate.checks import LAWS, Law, described
from tidegate.policies import Policy
from tidegate.types import Array, Rows, Time


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", tg.policies.names())
def test_every_policy_keeps_every_law(name: str, law: Law) -> None:
    law(tg.policies.find(name))


@dataclass(frozen=True)
class Moody(Policy):
    """Scores depend on how often it was asked, and are not numbers when it was asked too often."""

    asked: ClassVar[list[int]] = []

    def scores(self, rows: Rows, now: Time) -> Array:
        self.asked.append(1)
        return np.sin(len(self.asked) * (1.0 + rows.id))


@pytest.mark.parametrize("law", ["pure", "deterministic", "restorable"])
def test_a_policy_with_moods_is_caught(law: str) -> None:
    with pytest.raises(AssertionError, match="Moody"):
        next(found for found in LAWS if found.__name__ == law)(Moody())


@dataclass(frozen=True)
class Secretive(Policy):
    """Does not tell all of its parameters."""

    scale: float = 1.0

    def scores(self, rows: Rows, now: Time) -> Array:
        return self.scale * rows.id

    def parameters(self) -> dict[str, Any]:
        return {}


def test_a_policy_that_tells_too_little_is_caught() -> None:
    described(Secretive())
    with pytest.raises(
        AssertionError, match=r"Secretive\(scale=2.0\) has parameters {}, which make .*scale=1.0"
    ):
        described(Secretive(2.0))
    with pytest.raises(AssertionError, match="which JSON cannot hold"):
        described(tg.policies.Random(seed=1j))  # type: ignore[arg-type]


def test_a_policy_without_a_name_is_not_listed() -> None:
    assert Moody in Policy.__subclasses__()
    assert not any(type(tg.policies.find(name)) is Moody for name in tg.policies.names())
