"""The HTTP client of every part: one set of limits, deadlines, faults, logins and rules for TLS."""
