"""How Hypothesis runs here: the same cases every time, and no deadline, since a first call compiles."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "tidegate",
    derandomize=True,
    deadline=None,
    max_examples=100,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tidegate")
