"""A provider in a box: strict about the protocol, exact about tokens, deterministic, and with no key."""

from agentkit.simulator.core import Simulator
from agentkit.simulator.faults import KINDS, Fault
from agentkit.simulator.profiles import PROFILES, Profile

__all__ = ["KINDS", "PROFILES", "Fault", "Profile", "Simulator"]
