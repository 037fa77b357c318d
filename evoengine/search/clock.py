"""The time as rows and records keep it."""

from datetime import UTC, datetime


def utc_now() -> str:
    """ISO 8601, UTC, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
