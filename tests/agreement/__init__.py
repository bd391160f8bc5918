"""Holds a cluster still, asks every surface, and compares what they say. `python -m tests.agreement [SCENARIO…]`."""
