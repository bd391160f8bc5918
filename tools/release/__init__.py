"""Builds everything that a release publishes, from a checkout, without uploading anything."""
