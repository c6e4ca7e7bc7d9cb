"""Providers: the same agent talks to each of them."""
