// The only script of these pages; all of them work without it.
"use strict";
(() => {
  const typing = (node) => node.closest("input, textarea, select, [contenteditable]");

  // Times are shown in the zone of whoever looks; the title keeps UTC.
  for (const time of document.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.valueOf())) continue;
    const today = at.toDateString() === new Date().toDateString();
    const clock = { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false };
    // Steps of one message are told apart by milliseconds.
    const step = time.closest(".tl") !== null;
    if (step) clock.fractionalSecondDigits = 3;
    time.textContent = at.toLocaleString(undefined, today || step ? clock : { day: "numeric", month: "short", ...clock });
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const before = button.textContent;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Press Ctrl+C";
    }
    setTimeout(() => { button.textContent = before; }, 2000);
  });

  const rows = () => [...document.querySelectorAll("table.rows tbody a.to")];
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (event.key === "/") {
      const find = document.querySelector("#q");
      if (find) { event.preventDefault(); find.focus(); }
    } else if (event.key === "j" || event.key === "k") {
      const all = rows();
      const next = all.indexOf(document.activeElement) + (event.key === "j" ? 1 : -1);
      all[Math.max(0, Math.min(all.length - 1, next))]?.focus();
    } else if (event.key === "c") {
      location.assign("/messages/new");
    }
  });
})();
