"""The process that runs candidates: inputs, expected outputs, gates, a backend for each device."""
