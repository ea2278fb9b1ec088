"""Every sampler keeps every law."""

from __future__ import annotations

import pytest

from tests.sampling.workload import MODEL
from tidegate import sampling
from tidegate.checks import SAMPLER_LAWS, SamplerLaw

SAMPLERS = [
    *map(sampling.find, sampling.names()),
    sampling.Uniform(p=0.2, model=MODEL),
    sampling.Uniform(model="age"),
    sampling.PpsCluster(p=0.2),
    sampling.EqCluster(p=0.5, overflow=0.5),
]


@pytest.mark.parametrize("law", SAMPLER_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: f"{sampler.name}, p={sampler.p}")
def test_sampler_keeps_the_law(sampler: sampling.Sampler, law: SamplerLaw) -> None:
    law(sampler)
