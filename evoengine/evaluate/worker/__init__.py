"""The process that runs candidates: inputs, expected outputs, gates, one backend a device."""
