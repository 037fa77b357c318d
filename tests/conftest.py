"""Settings of the whole suite."""

from hypothesis import settings

# The same examples on every run, and no limit on their time: the machine may be busy. Look for new
# ones with `pytest --hypothesis-profile=explore`.
settings.register_profile("same", derandomize=True, deadline=None, max_examples=150, database=None)
settings.register_profile("explore", deadline=None, max_examples=5000)
settings.load_profile("same")
