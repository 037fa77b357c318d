"""How many tokens a text has, roughly: every tokenizer counts differently."""

from __future__ import annotations

BYTES_PER_TOKEN = 4  # of English and code, with the tokenizers of current models
COUNTED_AS = f"an estimate: UTF-8 bytes / {BYTES_PER_TOKEN}"


def bytes_of_text(text: str) -> int:
    """The bytes of `text` in UTF-8."""
    return len(text.encode("utf-8", "replace"))


def estimated_tokens(text: str) -> int:
    """The tokens of `text`, rounded up."""
    return -(-bytes_of_text(text) // BYTES_PER_TOKEN)
