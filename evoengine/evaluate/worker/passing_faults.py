"""Which faults of a baseline may be gone the next time, without a change of anything."""

from __future__ import annotations

from collections.abc import Iterator

# What libraries say that raise no error of a type of its own; cuBLAS allocates its workspace late.
_NO_MEMORY = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")


def may_pass(error: BaseException) -> bool:
    """Whether `error`, or one that it was raised from, is a lack of device memory, which another
    process may have taken, or an error of the file system.
    """
    return any(_passes(one) for one in _with_causes(error))


def _passes(error: BaseException) -> bool:
    return (
        isinstance(error, OSError | MemoryError)
        or getattr(error, "out_of_memory", False)  # of a VirtualMemoryError
        or any(words in str(error) for words in _NO_MEMORY)
    )


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    seen = set[int]()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__
