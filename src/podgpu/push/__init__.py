"""Sends each snapshot to an OpenTelemetry collector, as the standard environment variables say."""
