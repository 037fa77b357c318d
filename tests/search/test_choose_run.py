"""What a new run is set to where nothing says otherwise."""

from __future__ import annotations

import pytest

from evoengine.evaluate.device_choice import DeviceChoice
from evoengine.search import choose_run as module
from evoengine.search.choose_run import choose_run
from evoengine.search.run_options import RunOptions

GPU, EMULATOR = DeviceChoice(0), DeviceChoice(None, "h200")


@pytest.mark.parametrize(
    ("generator", "device", "given", "expected"),
    [
        ("tune", GPU, None, 16),
        ("tune", GPU, 3, 3),
        ("tune", EMULATOR, None, 8),
        ("openai", GPU, None, 8),
    ],
)
def test_a_tuner_alone_has_twice_as_many_trials_in_flight_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
    generator: str,
    device: DeviceChoice,
    given: int | None,
    expected: int,
) -> None:
    monkeypatch.setattr(module, "find_device", lambda *_: device)
    chosen = choose_run(
        "sdpa_h200",
        RunOptions(generator=generator, price_usd=(1.0, 1.0)),
        in_flight=given,
        environ={"OPENAI_API_KEY": "none"},
    )
    assert chosen.config.in_flight == expected
