"""A page of another origin is refused, and nobody outside is asked about it."""

import requests
from streamlit import net_util
from streamlit.web.server import server_util

from ui.server import ask_nobody_outside


def test_a_socket_of_another_origin_is_refused_without_a_look_outside(monkeypatch):
    asked = []
    monkeypatch.setattr(net_util, "get_external_ip", net_util.get_external_ip)  # so that it comes back
    monkeypatch.setattr(net_util, "_external_ip", None)
    monkeypatch.setattr(requests, "get", lambda url, **_: asked.append(url))
    ask_nobody_outside()
    assert not server_util.is_url_from_allowed_origins("https://elsewhere.example")
    assert server_util.is_url_from_allowed_origins("http://localhost:8501")
    assert asked == []
