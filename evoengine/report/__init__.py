"""What a person sees: a live view, tables, JSON and files, all made from the same rows."""
