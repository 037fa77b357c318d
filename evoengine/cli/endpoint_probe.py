"""Checks whether a model endpoint answers, without asking a model."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request

PROBE_TIMEOUT_S = 10.0


def probe(url: str, key: str) -> str:
    """What is wrong with the endpoint at `url`; empty if it lists its models."""
    if not url.startswith(("http://", "https://")):
        return "its address must begin with http:// or https://"
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        request = urllib.request.Request(f"{url.rstrip('/')}/models", headers=headers)  # noqa: S310 - http or https, see above
        with urllib.request.urlopen(request, timeout=PROBE_TIMEOUT_S) as answer:  # noqa: S310
            return (
                ""
                if answer.status == http.HTTPStatus.OK
                else f"it answers with status {answer.status}"
            )
    except urllib.error.HTTPError as error:
        with error:  # its body may repeat the key
            return (
                "it refuses the key (401)"
                if error.code == http.HTTPStatus.UNAUTHORIZED
                else f"it answers with status {error.code}"
            )
    except urllib.error.URLError as error:
        return f"it cannot be reached: {error.reason}"
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"it cannot be reached: {type(error).__name__}"
