"""What a browser's own helpers must leave as it is.

Its translation puts other words in the place of a page's. Of the explanations
that helps who reads English with difficulty; under a token's number it would
put a word that the model never read, and a control that Streamlit goes on
writing to would show what was so. So only `WORDS` is offered to it. Nothing
above them is marked, because neither Google's nor Microsoft's looks below a
mark for what may be translated again (W3C, results of the translate tests).

Its spelling checker underlines [MASK], and a phone's puts another word in its
place: what is typed here is what is read.
"""

from __future__ import annotations

import json

#: What is explained, in HTML of the explorer's own, which Streamlit writes anew as a whole.
WORDS = (".bw-head h1", ".bw-lead", ".bw-below", ".bw-checks", ".bw-sub", ".bw-small", ".bw-notice", ".bw-step",
         ".bw-reveal", ".bw-checklist", ".bw-claim", ".bw-card", ".bw-offer", ".bw-words")
#: Elements of Streamlit's that hold others, by their test id; a word of their own none of them has.
HOLDERS = ("stScreencast", "stApp", "stAppViewContainer", "stMain", "stMainBlockContainer", "stVerticalBlock",
           "stHorizontalBlock", "stColumn", "stLayoutWrapper", "stElementContainer", "stExpander", "stExpanderDetails",
           "stForm")
#: Watches from the first element on, so it has marked what is new before a translation, which comes later, sees it.
WATCH = """<script>
{
  const words = %s, holders = new Set(%s);
  const keep = (element) => element.setAttribute("translate", "no");
  const judge = (html) => { // one piece of the explorer's own HTML
    if (!html.querySelector(words)) { keep(html); return; }
    html.removeAttribute("translate");
    for (const one of html.querySelectorAll("*")) {
      if (one.localName === "code" || !(one.closest(words) || one.querySelector(words))) keep(one);
    }
  };
  const look = (element) => {
    const kind = element.dataset?.testid;
    if (kind === "stHtml") judge(element);
    else if (kind && !holders.has(kind)) keep(element);
    if (element.matches("input:not([type=password]), textarea")) {
      for (const [name, value] of [["spellcheck", "false"], ["autocorrect", "off"], ["autocapitalize", "off"],
                                   ["autocomplete", "off"]]) element.setAttribute(name, value);
    }
  };
  new MutationObserver((changes) => {
    for (const { target, addedNodes } of changes) {
      const html = target.closest?.('[data-testid="stHtml"]');
      if (html) { judge(html); continue; }
      for (const node of addedNodes) if (node.nodeType === 1) {
        if (node.parentNode === document.body && !node.matches(`#root, ${words}`)) keep(node); // lists, dialogs
        look(node);
        for (const one of node.querySelectorAll("[data-testid], input, textarea")) look(one);
      }
    }
  }).observe(document.documentElement, { childList: true, subtree: true });
}
</script>"""
SCRIPT = WATCH % (json.dumps(", ".join(WORDS)), json.dumps(HOLDERS))
