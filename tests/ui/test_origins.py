"""A page of another origin is refused, and nobody outside is asked about it."""

import socket

from streamlit import net_util
from streamlit.web.server import server_util

from ui.server import ask_nobody_outside


def test_a_socket_of_another_origin_is_refused_without_a_look_outside(monkeypatch):
    asked = []

    def look_up(host, *_, **__):
        asked.append(host)
        raise OSError("nobody is outside")

    monkeypatch.setattr(net_util, "get_external_ip", net_util.get_external_ip)  # so that it comes back
    monkeypatch.setattr(net_util, "_external_ip", None)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    ask_nobody_outside()
    assert not server_util.is_url_from_allowed_origins("https://elsewhere.example")
    assert server_util.is_url_from_allowed_origins("http://localhost:8501")
    assert asked == []
