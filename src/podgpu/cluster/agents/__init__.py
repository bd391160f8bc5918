"""Reads the agents' snapshots over HTTP."""
