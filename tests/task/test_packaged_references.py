"""The references of the packaged tasks are those that stored runs began with."""

import pytest

from evoengine.digest import digest
from evoengine.paths import tasks_dir

# A run keeps the digest of its reference and resumes with no other: even a comment that changes
# there ends the runs that users have. Change one only together with what it computes.
DIGESTS = {
    "adamw.py": "250dadde841b9c1f5f4e595e7ef558e0",
    "embedding_bag.py": "f1f264185a652e002a52561ae1433a9b",
    "layernorm.py": "ea9b35f1d94813a31659e32961c15c65",
    "matmul_fp16.py": "3bee2a43c62f8be5e415c253a28317a4",
    "sdpa.py": "b025af232160c4bdcb8cff9749aa6e45",
}


def test_every_packaged_reference_is_known() -> None:
    assert {path.name for path in tasks_dir().glob("*.py")} == set(DIGESTS)


@pytest.mark.parametrize("name", DIGESTS)
def test_a_packaged_reference_is_unchanged_so_that_runs_of_earlier_builds_resume(
    name: str,
) -> None:
    assert digest((tasks_dir() / name).read_bytes()) == DIGESTS[name]
