"use strict";
(() => {
  // Swagger UI has a dark sheet of its own, under a class; it follows the system here.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
  dark.addEventListener("change", follow);
  follow();
  const text = ({ name, example }) => {
    if (Array.isArray(example)) return example.join(",");
    if (typeof example !== "object") return String(example);
    return Object.entries(example).map(([key, value]) => `${name}[${key}]=${value}`).join("&");
  };
  // Swagger UI sends the examples of optional parameters, such as all filters of a list at once. They are shown instead.
  const show = (parameter) => {
    if (parameter.required || parameter.example === undefined) return;
    parameter.description += `\n\nExample: \`${text(parameter)}\``;
    delete parameter.example;
    if (parameter.schema.type === "object") parameter.schema.default = {};
  };
  const showExamples = (spec) => {
    for (const item of Object.values(spec.paths ?? {})) {
      for (const operation of Object.values(item)) (operation.parameters ?? []).forEach(show);
    }
    return spec;
  };
  addEventListener("DOMContentLoaded", () => {
    SwaggerUIBundle({
      url: "/openapi.json",
      dom_id: "#swagger-ui",
      layout: "BaseLayout",
      presets: [SwaggerUIBundle.presets.apis],
      plugins: [{ statePlugins: { spec: { wrapActions: { updateJsonSpec: (next) => (spec) => next(showExamples(spec)) } } } }],
      deepLinking: true,
      defaultModelsExpandDepth: -1,
      displayRequestDuration: true,
      docExpansion: "none",
      tryItOutEnabled: true,
    });
  });
})();
