// The only script of these pages; all of them work without it.
"use strict";
(() => {
  const typing = (node) => node.closest("input, textarea, select, [contenteditable]");

  // Times are entered in UTC; the hint of the field says what that is in the zone of whoever enters it.
  const tellLocal = (field) => {
    const hint = document.getElementById(`${field.id}-hint`);
    if (!hint) return;
    hint.dataset.before ??= hint.textContent;
    const at = new Date(`${field.value}Z`);
    const local = Number.isNaN(at.valueOf()) ? "" : ` Your time: ${at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })}.`;
    hint.textContent = hint.dataset.before + local;
  };

  // Times are shown in the zone of whoever looks; the title keeps UTC.
  const localise = (part) => {
    for (const time of part.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.valueOf())) continue;
      const today = at.toDateString() === new Date().toDateString();
      const clock = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
      // Steps of one message are told apart by milliseconds.
      const step = time.closest(".tl") !== null;
      if (step) clock.fractionalSecondDigits = 3;
      const day = { day: "numeric", month: "short" };
      if (at.getFullYear() !== new Date().getFullYear()) day.year = "numeric";
      time.textContent = at.toLocaleString(undefined, today || step ? clock : { ...day, ...clock });
    }
    part.querySelectorAll("input[type=datetime-local]").forEach(tellLocal);
  };

  const links = (part) => [...part.querySelectorAll("table.rows tbody a.to")];
  const rowsOf = (part) => new Map(links(part).map((link) => [link.getAttribute("href"), link.closest("tr")]));

  // Says something above the page, or takes it back.
  const say = (id, content) => {
    document.getElementById(id)?.remove();
    if (!content) return;
    const [note, words] = [document.createElement("div"), document.createElement("p")];
    note.id = id;
    note.className = "note";
    note.setAttribute("role", "status");
    words.append(content);
    note.append(words);
    document.querySelector("main").prepend(note);
  };

  // Whether somebody has changed what a field had when the page was made.
  const isChanged = (field) => {
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    if (field.localName !== "select") return field.value !== field.defaultValue;
    const before = [...field.options].findLast((option) => option.defaultSelected) ?? field.options[0];
    return field.selectedIndex !== (before?.index ?? -1);
  };
  const changed = (main) => [...main.querySelectorAll("input:not([type=hidden]), textarea, select")].filter(isChanged);

  // What somebody types into, has changed or opened stays as it is.
  const inUse = (main) => (main.contains(document.activeElement) && document.activeElement.matches("input:not([type=checkbox], [type=radio]), textarea, select"))
    || main.querySelector(":popover-open") !== null || changed(main).length > 0;

  // Puts a part in the place of another, with the focus where it was.
  const replace = (old, now) => {
    const focused = old.contains(document.activeElement) && document.activeElement;
    old.replaceWith(now);
    localise(now);
    if (!focused) return;
    const same = [...now.querySelectorAll(focused.localName)].find((part) => part.textContent === focused.textContent);
    same?.focus({ preventScroll: true });
  };

  // Announces what waits until it is asked for. The address is without its fragment, so that following it loads the page.
  const announce = (text) => {
    if (text && document.querySelector("#news a")?.textContent === text) return;
    const show = document.createElement("a");
    show.href = location.pathname + location.search;
    show.textContent = text;
    say("news", text && show);
  };

  // Rows that are shown change in place; new ones, and those that moved up, wait until they are asked for.
  const renewRows = (main, page, known) => {
    const [here, now] = [rowsOf(main), rowsOf(page)];
    const [before, order] = [[...here.keys()], [...now.keys()]];
    const movedUp = (href, at) => order.slice(at + 1).some((later) => before.includes(later) && before.indexOf(later) < before.indexOf(href));
    const fresh = order.filter((href, at) => !here.has(href) || movedUp(href, at)).length;
    for (const [href, row] of now) {
      const html = row.outerHTML;
      if (here.has(href) && known.get(href) !== html) {
        known.set(href, html);
        replace(here.get(href), row);
      }
    }
    announce(fresh > 0 && `${fresh} new. Show`);
  };

  // A page without what differs each time: the time at which it was made, and the keys of its forms that are good once.
  const bare = (part) => part.innerHTML.replace(/<time class="made"[^]*?<\/time>|<input [^>]*name="once"[^>]*>/g, "");

  // Stands for the session, its project and its environment.
  const view = (part) => part.querySelector("input[name=key]")?.value;

  // A page that says so is fetched again and again while somebody looks at it.
  const follow = () => {
    let main = document.querySelector("main[data-live]");
    if (!main) return;
    const rows = main.dataset.live === "rows";
    const every = { rows: 4000, calm: 5000 }[main.dataset.live] ?? 2000;
    let html = bare(main);
    const known = new Map([...rowsOf(main)].map(([href, row]) => [href, row.outerHTML]));
    const again = () => setTimeout(look, every);
    const look = async () => {
      if (document.hidden) return again();
      try {
        const answer = await fetch(location.href, { headers: { accept: "text/html" } });
        // Not signed in any more; or it was deleted, or may not be seen any more, as the page then says.
        if (answer.redirected || answer.status === 404 || answer.status === 403) return location.reload();
        const whole = new DOMParser().parseFromString(await answer.text(), "text/html");
        // Another tab switched to another project or environment: the whole page changes, and its forms.
        if (view(whole) && view(whole) !== view(document)) return location.reload();
        if (!answer.ok) throw new Error(answer.statusText);
        const page = whole.querySelector("main");
        if (rows) renewRows(main, page, known);
        else if (inUse(main)) announce(bare(page) !== html && "There is something new. Show");
        else if (bare(page) === html) {
          announce(false);
          const [old, now] = [main, page].map((part) => part.querySelector("time.made"));
          if (now) old.replaceWith(now);
          localise(main);
        } else {
          html = bare(page);
          // What somebody opened stays open.
          const open = [...main.querySelectorAll("details")].map((part) => part.open);
          [...page.querySelectorAll("details")].forEach((part, at) => { part.open ||= open[at] ?? false; });
          replace(main, page);
          main = page;
        }
        say("lost");
      } catch {
        if (!document.getElementById("lost")) say("lost", `The server has not responded since ${new Date().toLocaleTimeString()}. This page shows the state at that time.`);
      }
      if (main.dataset.live) again();
    };
    again();
  };

  follow();
  localise(document);
  document.addEventListener("input", (event) => {
    if (event.target.type === "datetime-local") tellLocal(event.target);
  });

  // Every form leads to another page, which has nothing of what was entered in the others. The second click of a double click would take away
  // what the first one is answered.
  document.addEventListener("submit", (event) => {
    const [form, now] = [event.target, event.timeStamp];
    const isLost = changed(document.querySelector("main")).some((field) => field.form !== form);
    if (isLost && !confirm("What you entered in another form of this page is not saved, and will be lost. Continue?")) event.preventDefault();
    else if (now - (form.sentAt ?? -Infinity) < 1500) event.preventDefault();
    else form.sentAt = now;
  });

  // What is being written is checked in every pause.
  const checked = document.querySelector("form[data-check=live]");
  if (checked) {
    let waiting;
    checked.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(async () => {
        const body = new URLSearchParams(new FormData(checked));
        body.set("do", "check");
        const written = body.toString();
        const answer = await fetch(checked.action, { method: "POST", body }).catch(() => null);
        const page = answer && new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("#live");
        const now = new URLSearchParams(new FormData(checked));
        now.set("do", "check");
        if (page && now.toString() === written) document.querySelector("#live").replaceChildren(...page.childNodes);
      }, 400);
    });
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

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    const main = document.querySelector("main");
    if (main.querySelector(":popover-open")) return;
    if (event.key === "/") {
      const find = document.querySelector("#q");
      if (find) { event.preventDefault(); find.focus(); }
    } else if (event.key === "j" || event.key === "k") {
      const all = links(document);
      const next = all.indexOf(document.activeElement) + (event.key === "j" ? 1 : -1);
      all[Math.max(0, Math.min(all.length - 1, next))]?.focus();
    } else if (event.key === "c" && !inUse(main)) {
      location.assign("/messages/new");
    }
  });
})();
