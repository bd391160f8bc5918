"""Puts the parts together according to the configuration, for the commands and for the library."""
