"""Hypothesis runs the same cases every time, so that a red test is red for everyone."""

import hypothesis

hypothesis.settings.register_profile("bough", derandomize=True, deadline=None, print_blob=True)
hypothesis.settings.load_profile("bough")
