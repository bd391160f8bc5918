"""The snapshot in OpenTelemetry's words: `series` tells pods apart, `names` translates, `message` encodes.

Only `message` needs the optional dependency.
"""
