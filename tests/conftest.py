"""Settings for all tests: no hypothesis test depends on wall time, and Ctrl-C reaches the programs that are started."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

settings.register_profile("galint", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("galint")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it runs in the background like that, and every program started from there inherits it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
