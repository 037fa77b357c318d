"""The parent side of a device: its worker processes, their clock and their end."""
