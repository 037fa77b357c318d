"""PTX text to values."""
