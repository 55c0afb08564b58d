"""Clients of the databases, the broker and the model endpoints, and the telemetry of a process."""
