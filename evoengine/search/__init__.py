"""Starts, runs, resumes and reads runs."""
