// Swagger UI has a dark sheet of its own, under a class; it follows the system here.
"use strict";
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
  dark.addEventListener("change", follow);
  follow();
})();
