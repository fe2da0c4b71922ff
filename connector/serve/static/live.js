// Replaces what is live every few seconds by the server's newest; without this script a reload does the same.
"use strict";
(() => {
  const live = document.querySelector("[data-live]");
  const pause = document.getElementById("pause");
  const updated = document.getElementById("updated");
  if (!live || !pause) return;
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
  const refresh = async () => {
    if (paused || document.hidden || String(getSelection())) return;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (!answer.ok) throw new Error(String(answer.status));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const next = page.querySelector("[data-live]");
      if (!next) return;
      const open = [...live.querySelectorAll("details[open]")].map((one) => one.id);
      const focused = live.contains(document.activeElement) ? document.activeElement : null;
      const summary = focused && focused.tagName === "SUMMARY" ? focused.parentElement.id : "";
      const before = words(live);
      live.replaceChildren(...next.childNodes);
      for (const id of open) if (id) document.getElementById(id)?.setAttribute("open", "");
      if (summary) document.getElementById(summary)?.querySelector("summary")?.focus();
      else if (focused && focused.id) document.getElementById(focused.id)?.focus();
      document.title = page.title;
      updated.textContent = words(live) === before ? "" : `Now: ${words(live)}`;
    } catch (error) {
      updated.textContent = "The server does not answer; what is shown is old.";
    }
  };
  setInterval(refresh, EVERY);
})();
