"""The process that runs candidates; it holds no seed, no reference and no expected output."""
