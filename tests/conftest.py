"""Settings of our own tests."""

import os

from hypothesis import HealthCheck, settings

# Machines are shared and noisy: no deadline. In CI the examples are the same every time.
settings.register_profile("ours", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("ours"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "ours")
