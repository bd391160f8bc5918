"""Completes what the user types in a shell."""
