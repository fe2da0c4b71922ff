// Replaces what is live every few seconds by the server's newest; without this script a reload does the same.
"use strict";
(() => {
  const lives = [...document.querySelectorAll("[data-live]")];
  const pause = document.getElementById("pause");
  const updated = document.getElementById("updated");
  if (!lives.length || !pause) return;
  const EVERY = 5000;
  let paused = false;
  const words = (root) => (root.querySelector("#health") || {}).textContent || "";
  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Resume updates" : "Pause updates";
    updated.textContent = paused ? "Updates are paused" : "";
  });
  // What is open stays open, what is closed closed, and the focus where it is.
  const replace = (live, next) => {
    if (!next) return;
    const known = new Map([...live.querySelectorAll("details")].map((one) => [one.id, one.open]));
    const focused = live.contains(document.activeElement) ? document.activeElement : null;
    const summary = focused && focused.tagName === "SUMMARY" ? focused.parentElement.id : "";
    live.replaceChildren(...next.childNodes);
    for (const one of live.querySelectorAll("details")) if (known.has(one.id)) one.open = known.get(one.id);
    if (summary) document.getElementById(summary)?.querySelector("summary")?.focus();
    else if (focused && focused.id) document.getElementById(focused.id)?.focus();
  };
  const refresh = async () => {
    if (paused || document.hidden || String(getSelection())) return;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (!answer.ok) throw new Error(String(answer.status));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const before = words(document);
      for (const live of lives) replace(live, page.getElementById(live.id));
      document.title = page.title;
      updated.textContent = words(document) === before ? "" : `Now: ${words(document)}`;
    } catch (error) {
      updated.textContent = "The server does not answer; what is shown is old.";
    }
  };
  setInterval(refresh, EVERY);
})();
