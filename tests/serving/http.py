"""An address as a probe asks it."""

import urllib.error
import urllib.request


def fetch(address: str, seconds: float = 30.0) -> tuple[int, str]:
    """Status and text, also where the status is an error's."""
    try:
        with urllib.request.urlopen(address, timeout=seconds) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
