// Search and copy buttons. The pages work without them.
"use strict";
(() => {
  const ROOT = "/docs/guide/";
  const form = document.querySelector("#find");
  const field = document.querySelector("#q");
  const found = document.querySelector("#found");
  const page = document.querySelector("#page");

  const make = (name, text) => Object.assign(document.createElement(name), { textContent: text });
  const script = (name) => new Promise((resolve, reject) => {
    const node = Object.assign(document.createElement("script"), { src: ROOT + name, onload: resolve, onerror: reject });
    document.head.append(node);
  });

  // The index is loaded with the first search.
  let index;
  const load = async () => {
    window.search = {};
    await Promise.all([script("elasticlunr.min.js"), script("searchindex.js")]);
    return elasticlunr.Index.load(window.search.index);
  };

  // The words around the first hit.
  const excerpt = (text, words) => {
    const lower = text.toLowerCase();
    const at = Math.max(0, Math.min(...words.map((word) => lower.indexOf(word)).filter((n) => n >= 0), lower.length));
    const from = at === lower.length ? 0 : Math.max(0, at - 60);
    return (from > 0 ? "…" : "") + text.slice(from, from + 180) + (from + 180 < text.length ? "…" : "");
  };

  const show = (hits, words, text) => {
    const list = document.createElement("ol");
    for (const hit of hits.slice(0, 20)) {
      const link = Object.assign(document.createElement("a"), { href: ROOT + window.search.doc_urls[hit.ref] });
      link.append(make("b", hit.doc.title), make("small", hit.doc.breadcrumbs.split(" » ")[0]), make("span", excerpt(hit.doc.body, words)));
      const item = document.createElement("li");
      item.append(link);
      list.append(item);
    }
    const count = hits.length === 1 ? "One place" : `${hits.length || "No"} places`;
    found.replaceChildren(make("h2", `${count} for “${text}”`), list);
  };

  let latest = 0;
  const search = async () => {
    const turn = ++latest;
    const text = field.value.trim();
    const words = text.toLowerCase().split(/\s+/);
    page.hidden = text !== "";
    found.hidden = text === "";
    if (text === "") return;
    try {
      index ??= load();
      const ready = await index;
      if (turn === latest) show(ready.search(text, window.search.search_options), words, text);
    } catch {
      index = undefined;
      found.replaceChildren(make("p", "The search index cannot be loaded. Reload the page."));
    }
  };

  form.hidden = false;
  field.addEventListener("input", search);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    // On narrow screens the contents lie over the results.
    if (form.closest(":popover-open")) form.closest(":popover-open").hidePopover();
    else found.querySelector("a")?.click();
  });
  found.addEventListener("click", (event) => {
    if (!event.target.closest("a")) return;
    field.value = "";
    search();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && document.activeElement === field) {
      field.value = "";
      search();
    } else if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && document.activeElement !== field) {
      event.preventDefault();
      field.focus();
    }
  });

  document.querySelector(".chapter [aria-current]")?.scrollIntoView({ block: "nearest" });

  for (const block of document.querySelectorAll(".prose pre > code")) {
    const button = make("button", "Copy");
    button.className = "btn small";
    button.type = "button";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.textContent).catch(() => {});
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    block.parentElement.append(button);
  }
})();
