"""Commands that run until they are stopped."""
