"""Pictures of the running explorer: for README.md, or of every page to look at.

`make screenshots` writes docs/images/*.png. `--all FOLDER` writes every page at
390, 1440 and 1920 pixels, light and dark.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import urllib.parse
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench._server import serve  # noqa: E402 - after the path is set
from bench.keypress import ARGUMENTS  # noqa: E402

PAGES = ("tokens", "embeddings", "attention", "masking", "compare", "cls", "meaning", "tasks", "pretrain",
         "finetune", "family", "code", "class")
WIDTHS = (390, 1440, 1920)
SCHEMES = ("light", "dark")
#: README's pictures: file -> (page, parameters, scheme).
README = {
    "masking": ("masking", {"text": "The schoolteacher opened the [MASK] and read the first chapter."}, "light"),
    "attention": ("attention", {"view": "Through the layers",
                                "text": "The schoolteacher opened the [MASK] and read the first chapter."}, "light"),
    "compare": ("compare", {"text": "The schoolteacher opened the [MASK] and read the first chapter."}, "dark"),
}


def shoot(browser: Browser, url: str, path: Path, width: int, scheme: str, whole: bool) -> None:
    """One picture, taken when the page says that it has drawn."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector("[data-ready]", state="attached", timeout=120_000)
    page.wait_for_timeout(1500)
    if whole:
        height = page.evaluate("Math.max(...[...document.querySelectorAll('[data-testid=stMain]')]"
                               ".map(e => e.scrollHeight), 900)")
        page.set_viewport_size({"width": width, "height": min(int(height) + 40, 6000)})
        page.wait_for_timeout(700)
    page.screenshot(path=path)
    context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="every page, width and theme")
    parser.add_argument("--pages", nargs="*", default=PAGES, choices=PAGES)
    chosen = parser.parse_args()
    with serve() as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        if chosen.all is None:
            folder = ROOT / "docs" / "images"
            folder.mkdir(parents=True, exist_ok=True)
            for name, (page, parameters, scheme) in README.items():
                url = f"{server.address}/{page}?{urllib.parse.urlencode(parameters)}"
                shoot(browser, url, folder / f"{name}.png", 1440, scheme, whole=False)
        else:
            chosen.all.mkdir(parents=True, exist_ok=True)
            for page in chosen.pages:
                for width in WIDTHS:
                    for scheme in SCHEMES:
                        shoot(browser, f"{server.address}/{page}", chosen.all / f"{page}-{width}-{scheme}.png",
                              width, scheme, whole=True)
        browser.close()


if __name__ == "__main__":
    main()
