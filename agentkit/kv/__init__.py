"""The KV cache in code that one can read: a transformer in numpy, a real model, a real server (chapter 05)."""

import os

# One thread for numpy's matrix products, unless the reader has chosen: two threads on a busy machine make times worthless.
# It only helps before numpy is loaded, so it stands here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
