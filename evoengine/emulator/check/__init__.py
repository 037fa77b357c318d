"""Checked mode: finds errors of a kernel that its output may not show."""
