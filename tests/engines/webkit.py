"""WebKitGTK, whose engine is Safari's, through its own driver."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import NoSuchFrameException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.webkitgtk.service import Service

from tests.engines.window import SENTENCE, Window


class WebKit(Window):
    """A window of WebKitGTK's small browser."""

    def __init__(self, driver: webdriver.WebKitGTK) -> None:
        super().__init__()
        self.driver = driver

    def size(self, width: int, height: int) -> None:
        self.driver.set_window_size(width, height)

    def go(self, url: str) -> None:
        self.driver.get(url)

    def back(self) -> None:
        self.driver.back()

    def run(self, code: str, *arguments: Any) -> Any:
        try:
            return self.driver.execute_script(code, *arguments)
        except NoSuchFrameException:
            return None

    def click(self, selector: str, text: str = "") -> None:
        self.wait("return deep(arguments[0]).find((one) => one.innerText.includes(arguments[1]))",
                  selector, text).click()

    def write(self, text: str) -> None:
        for keys in ((Keys.CONTROL, "a"), (text,)):
            self.driver.find_element(By.CSS_SELECTOR, SENTENCE).send_keys(*keys)


@contextmanager
def webkit() -> Iterator[WebKit]:
    """A window; closed at the end."""
    settings = {**os.environ, "LIBGL_ALWAYS_SOFTWARE": "1"}
    if os.geteuid() == 0:  # its sandbox is for ordinary users
        settings["WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS"] = "1"
    options = webdriver.WebKitGTKOptions()
    (options.binary_location,) = map(str, Path("/usr/lib").glob("*/webkit2gtk-4.1/MiniBrowser"))
    options.add_argument("--automation")
    options.page_load_strategy = "none"  # the driver's own waiting sometimes never ends
    service = Service(executable_path=shutil.which("WebKitWebDriver"), env=settings)
    driver = webdriver.WebKitGTK(options=options, service=service)
    try:
        yield WebKit(driver)
    finally:
        driver.quit()
