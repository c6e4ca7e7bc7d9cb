"""One hypothesis profile for every test: the same examples on every run, so that a red run can be repeated."""

from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("repeatable")
