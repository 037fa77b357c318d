"""Named barriers whose number is read from memory."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("two_pairs", (3, 7)), _case("the_last_one", (15, 1))]


def _case(name: str, numbers: tuple[int, int]) -> Case:
    x = np.random.default_rng(numbers[0]).standard_normal((3, 2, 64)).astype(np.float32)
    args = (In(np.repeat(np.array(numbers, np.int32), 64)), In(x), Out(x.shape, "float32"))
    expected = {2: x[:, :, ::-1]}
    return Case(name, "barrier_of_a_loaded_number", (1, 1, 1), (128, 1, 1), args, expected)
