from __future__ import annotations

import subprocess
import sys

from hypothesis import assume, given
from hypothesis import strategies as st

from evoengine.digest import LENGTH, derived_seed, digest, digest_json

parts = st.lists(st.text(max_size=5), max_size=4)


@given(parts, parts)
def test_digests_differ_where_parts_differ(first: list[str], second: list[str]) -> None:
    assume(first != second)
    assert digest(*first) != digest(*second)
    assert len(digest(*first)) == LENGTH


def test_digests_depend_on_where_a_part_ends() -> None:
    assert len({digest("ab", "c"), digest("a", "bc"), digest("abc"), digest("abc", "")}) == 4
    assert digest("é") == digest("é".encode())


@given(st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=5))
def test_digests_do_not_depend_on_the_order_of_keys(value: dict[str, int | str]) -> None:
    assert digest_json(value) == digest_json(dict(reversed(value.items())))


def test_seeds_are_the_same_in_every_process() -> None:
    program = (
        "from evoengine.digest import derived_seed; print(derived_seed('mission', 'q',"
        " 'normal', 0))"
    )
    found = {
        int(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout)
        for _ in range(2)
    }
    assert found == {derived_seed("mission", "q", "normal", 0)}


@given(st.lists(st.integers(0, 50), min_size=2, max_size=2, unique=True))
def test_derived_seeds_fit_32_bits_and_differ(numbers: list[int]) -> None:
    first, second = (derived_seed(0, number) for number in numbers)
    assert 0 <= first < 2**32
    assert first != second
