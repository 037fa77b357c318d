"""Tries whether a task's gates refuse what is plainly wrong."""
