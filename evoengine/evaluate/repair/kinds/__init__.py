"""The kinds of changes: of what sort of place each is, and what it puts there."""
