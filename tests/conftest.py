"""Settings for all tests: no hypothesis test depends on wall time."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("galint", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("galint")
