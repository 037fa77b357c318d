"""The current time, as rows and records store it."""

from datetime import UTC, datetime


def utc_now() -> str:
    """The current time in ISO 8601, UTC, with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
