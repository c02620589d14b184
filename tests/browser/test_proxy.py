"""The explorer behind a real nginx, by the file that deploy/ gives."""

from __future__ import annotations

import shutil
import subprocess
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Response

from bench._server import ROOT, Server, free_port
from tests.browser.waiting import PATIENCE

pytestmark = [pytest.mark.full, pytest.mark.browser, pytest.mark.timeout(600),
              pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx: apt-get install nginx-light")]

TEXT = "Seekreet words fill the [MASK]."
MAIN = """pid {folder}/pid; error_log {folder}/main.log; worker_processes 1; events {{}}
http {{ client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e; include {folder}/site.conf; }}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """nginx's files, its logs among them."""
    return tmp_path_factory.mktemp("nginx")


@pytest.fixture(scope="module")
def proxy(server: Server, folder: Path) -> Iterator[str]:
    """Address of the proxy: deploy/nginx.conf with this run's ports and paths."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-keyout", f"{folder}/bothways.key", "-out", f"{folder}/bothways.pem"],
                   check=True, capture_output=True)
    port, site = free_port(), (ROOT / "deploy" / "nginx.conf").read_text()
    for ours, here in (("/etc/ssl/", f"{folder}/"), ("/var/log/nginx/", f"{folder}/"), ("listen 443", f"listen {port}"),
                       ("127.0.0.1:8501", server.address.removeprefix("http://"))):
        assert ours in site
        site = site.replace(ours, here)
    (folder / "site.conf").write_text(site)
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder))
    process = subprocess.Popen(["nginx", "-c", f"{folder}/nginx.conf", "-g", "daemon off;"])
    try:
        time.sleep(1)
        assert process.poll() is None, (folder / "main.log").read_text()
        yield f"https://localhost:{port}"
    finally:
        process.terminate()
        process.wait(timeout=10)


@pytest.fixture
def window(browser: Browser) -> Iterator[BrowserContext]:
    with browser.new_context(ignore_https_errors=True) as context:
        yield context


def test_a_page_opens_through_the_proxy_packed_and_its_text_is_in_no_log(proxy, window, folder):
    answers: list[Response] = []
    page = window.new_page()
    page.on("response", lambda answer: answers.append(answer))
    page.goto(f"{proxy}/masking?text={TEXT}")
    page.wait_for_selector("[data-ready]", state="attached", timeout=PATIENCE)
    assert page.locator(".bw-guess .bw-piece").count() > 1
    texts = [answer.headers for answer in answers if answer.url.startswith(proxy)  # not a blob, which is no answer
             and answer.headers.get("content-type", "").split(";")[0].endswith(("javascript", "css", "html"))]
    assert len(texts) > 10
    assert {headers.get("content-encoding") for headers in texts} == {"gzip"}
    (cookie,) = [cookie for cookie in window.cookies() if cookie["name"] == "both_ways"]
    assert cookie["secure"]
    assert cookie["httpOnly"]
    logs = "".join(log.read_text() for log in folder.glob("*.log"))
    assert "GET /masking" in logs
    assert "Seekreet" not in logs


def test_the_link_of_a_long_text_opens_through_the_proxy(proxy, window):
    text = "Der Hund bellt über den Zaun. " * 400
    page = window.new_page()
    answer = page.goto(f"{proxy}/masking?{urllib.parse.urlencode({'text': text})}")
    assert answer.status == 200
    page.wait_for_selector("[data-ready]", state="attached", timeout=PATIENCE)
    assert page.get_by_label("Sentence", exact=True).input_value().startswith("Der Hund bellt über")
    answer = page.request.get(f"{proxy}/_stcore/metrics")
    assert answer.status == 404
