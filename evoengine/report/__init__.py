"""What the user sees: a live view, tables, JSON and files, all made from the same rows."""
