"""What a change says of the mistake that it mends, in words."""
