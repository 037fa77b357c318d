"""Tests of forensics."""
