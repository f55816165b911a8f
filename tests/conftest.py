"""Shared settings: properties are checked on the same examples every run, however long a first compilation takes."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "primalsvm", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("primalsvm")
