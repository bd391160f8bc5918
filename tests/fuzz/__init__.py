"""Feeds what comes from outside with damaged copies of itself. Only the documented errors may come of it."""
