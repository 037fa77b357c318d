"""Forensics: from a wrong output to what is wrong with the kernel that wrote it."""
