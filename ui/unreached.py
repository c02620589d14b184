"""What a page says where the connection to its server does not come about.

The HTML and the scripts come by HTTP, everything after them through a
WebSocket. Some schools' and companies' networks let the first through and not
the second: Streamlit then shows an empty page for ever, and a lost connection
looks like a page that has nothing to say.
"""

from __future__ import annotations

import json

#: Seconds without a connection after which the page says so.
LATE = 12
#: Before the first picture, and after one.
NEVER = ("No connection to the server yet; the page keeps trying. If this stays, the server is not running, or this "
         "network blocks WebSockets, as some schools and companies do: tell whoever runs it.")
LOST = "The connection to the server is lost; the page keeps trying. What is on the page stays."
#: A timer that sleeps with its computer counts no seconds meanwhile; a connection that is cut at once again is none.
WATCH = """<script>
{
  const [never, lost] = %s;
  let seconds = 0, was = "";
  const line = document.createElement("p");
  line.className = "bw-words"; // for a browser's translation (ui/untouched.py)
  line.setAttribute("role", "status");
  line.style.cssText = "position: fixed; left: 0; right: 0; bottom: 0; z-index: 99999; margin: 0; padding: 12px; " +
    "background: #FFF3CD; color: #1C1E22; font: 16px/1.4 'Source Sans', sans-serif; border-top: 1px solid #D9D5CB";
  setInterval(() => {
    const state = document.querySelector("[data-test-connection-state]")?.getAttribute("data-test-connection-state");
    if (state === "CONNECTED") seconds = was === state ? 0 : seconds;
    else if (state) seconds += 1;
    was = state;
    if (seconds < %d) line.remove();
    else if (!line.isConnected) {
      line.textContent = document.querySelector("[data-ready]") ? lost : never;
      document.body.append(line);
    }
  }, 1000);
}
</script>"""
SCRIPT = WATCH % (json.dumps([NEVER, LOST]), LATE)
