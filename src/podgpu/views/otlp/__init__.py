"""The snapshot in OpenTelemetry's words: `series` distinguishes pods, `names` translates, `message` encodes.

Only `message` needs the optional dependency.
"""
