"""`python -m agentkit` is the same as `agentkit`."""

import sys

from agentkit.cli import main

sys.exit(main())
