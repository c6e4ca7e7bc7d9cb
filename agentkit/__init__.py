"""Context management for coding agents, small enough to read."""
