"""Abuses a server, and counts what good clients miss."""
