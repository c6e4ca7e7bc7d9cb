"""One hypothesis profile for every test: the same examples on every run, so that a red run can be repeated."""

import os

from hypothesis import settings

# The tests run one process per core; numpy's own threads on top of that make its small matrices ten times slower.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("repeatable")
