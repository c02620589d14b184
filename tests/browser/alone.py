"""One component on an empty page, its data handed to it as Streamlit does: no server, and no wait for one."""

from __future__ import annotations

import base64

from playwright.sync_api import Browser, Page

from ui import served

#: Gives the component its data: the same parent each time, messages kept in `sent`.
DRAW = """(raw) => {
  window.parent_ ??= document.body.appendChild(document.createElement("div")).attachShadow({ mode: "open" });
  window.sent ??= [];
  const data = Uint8Array.from(atob(raw), (one) => one.charCodeAt(0));
  window.mount({ parentElement: window.parent_, data, setTriggerValue: (_, message) => window.sent.push(message) });
}"""
LOOK = ":root { --st-background-color: #FCFBF8; --st-text-color: #1C1E22; --st-border-color: #D9D5CB; }"


class Alone:
    """A component by itself: `draw` gives it data, `sent` is what it said."""

    def __init__(self, browser: Browser, name: str, **window: object) -> None:
        self.page: Page = browser.new_page(**window)
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        script, style = served.source(name)
        self.page.add_style_tag(content=LOOK)
        self.page.add_script_tag(content=script.replace("export default function", "window.mount = function"),
                                 type="module")
        self.page.wait_for_function("() => !!window.mount")
        self._style = style

    def draw(self, data: bytes) -> None:
        """What `components.mount` does with a payload of `components.pack`."""
        self.page.evaluate(DRAW, base64.b64encode(data).decode())
        self.page.evaluate("""(style) => {
          if (window.parent_.adoptedStyleSheets.length) return;
          const sheet = new CSSStyleSheet();
          sheet.replaceSync(style);
          window.parent_.adoptedStyleSheets = [sheet];
        }""", self._style)

    def sent(self) -> list[dict[str, object]]:
        """The messages so far."""
        return self.page.evaluate("window.sent")

    def close(self) -> None:
        """No script may have failed."""
        self.page.close()
        assert not self.errors
