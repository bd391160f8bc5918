"""Serves a cluster: pages are joined from what was rendered of each node when it changed."""
