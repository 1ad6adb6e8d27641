"use strict";
(() => {
  // Swagger UI has a dark sheet of its own, under a class; it follows the system here.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
  dark.addEventListener("change", follow);
  follow();
  addEventListener("DOMContentLoaded", () => {
    SwaggerUIBundle({
      url: "/openapi.json",
      dom_id: "#swagger-ui",
      layout: "BaseLayout",
      presets: [SwaggerUIBundle.presets.apis],
      deepLinking: true,
      defaultModelsExpandDepth: -1,
      displayRequestDuration: true,
      docExpansion: "none",
      tryItOutEnabled: true,
    });
  });
})();
