"""Which configurations are measured."""

from __future__ import annotations

from benchmarks.configurations import SEEDS, jobs_of, spread
from evoengine.candidate.arch import DeviceLimits

H200 = DeviceLimits("sm_90", 227 * 1024, 132)


def test_configurations_differ_in_as_much_as_they_can_and_the_first_is_the_default() -> None:
    items = [{"A": a, "B": b} for a in (1, 2, 3) for b in (10, 20, 30)]
    chosen = spread(items, 3)
    assert chosen[0] == items[0]
    assert {item["A"] for item in chosen} == {1, 2, 3}
    assert {item["B"] for item in chosen} == {10, 20, 30}
    assert spread(items[:2], 5) == items[:2]


def test_every_configuration_has_a_job_for_each_of_its_cases() -> None:
    _, cases, _ = SEEDS["layernorm"]
    jobs = list(jobs_of("layernorm", H200, scale=0.2))
    assert len(jobs) == 5 * len(cases)
    assert {job.plan.case for job in jobs} == set(cases)
    assert all(job.unit.arch == "sm_90" and job.unit.kernels for job in jobs)
