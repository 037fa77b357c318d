"""The process that runs candidates: inputs, answers, gates, and a bench for each kind of device."""
