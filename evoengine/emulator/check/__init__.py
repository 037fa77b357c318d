"""Checked mode: what a kernel does that is wrong although its output may be right."""
