"""What a child process gets of the environment."""

import pytest

from evoengine.evaluate.child_environment import child_environment

PASSED = [
    *(
        "PATH",
        "HOME",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "LANG",
        "LC_ALL",
        "XDG_CACHE_HOME",
        "PYTHONPATH",
        "PYTHONHASHSEED",
        "COVERAGE_PROCESS_START",
    ),
    *(
        "CUDA_VISIBLE_DEVICES",
        "CUDA_HOME",
        "NVIDIA_VISIBLE_DEVICES",
        "CUPY_CACHE_DIR",
        "TORCHINDUCTOR_CACHE_DIR",
        "PYTORCH_CUDA_ALLOC_CONF",
    ),
    *(
        "TRITON_CACHE_DIR",
        "OMP_NUM_THREADS",
        "OPENBLAS_CORETYPE",
        "OPENBLAS_L2_SIZE",
        "MKL_NUM_THREADS",
        "EVOENGINE_CLANG",
        "USER",
    ),
]
KEPT_BACK = [
    *(
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OPENAI_ORG_ID",
        "ANTHROPIC_API_KEY",
        "HF_TOKEN",
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "PGPASSWORD",
    ),
    *(
        "NVIDIA_API_KEY",
        "EVOENGINE_API_KEY",
        "TORCH_HUB_TOKEN",
        "PYTHON_KEYRING_BACKEND",
        "XDG_SESSION_COOKIE",
        "CUDA_AUTH",
    ),
    *(
        "HTTPS_PROXY",
        "https_proxy",
        "SSH_AUTH_SOCK",
        "DATABASE_URL",
        "CPATH",
        "GIT_ASKPASS",
        "PATHS",
        "MY_PATH",
        "",
    ),
]


@pytest.mark.parametrize("name", PASSED)
def test_what_programs_and_devices_need_is_let_through(name: str) -> None:
    assert child_environment({name: "value"}) == {name: "value"}


@pytest.mark.parametrize("name", KEPT_BACK)
def test_keys_and_whatever_nobody_listed_are_kept_back(name: str) -> None:
    assert child_environment({name: "value"}) == {}


@pytest.mark.parametrize(
    "value", ["http://me:secret@proxy:3128", "redis://:secret@cache/0", "a=b;https://token@host/x"]
)
def test_an_address_with_a_user_is_kept_back_under_any_name(value: str) -> None:
    assert child_environment(
        {"TORCHINDUCTOR_REDIS_URL": value, "CUPY_MIRROR": "https://host/a@b"}
    ) == {"CUPY_MIRROR": "https://host/a@b"}
