// Shows the API document with Swagger UI, which does not show the scopes of keys: they join the summaries.
"use strict";

(async () => {
  const spec = await (await fetch("openapi.json")).json();
  spec.servers = [{ url: new URL(".", location.href).href.replace(/\/$/, "") }]; // also below a prefix
  spec.info.description += "\n\n[OpenAPI document](openapi.json)";
  for (const path of Object.values(spec.paths)) {
    for (const operation of Object.values(path)) {
      const schemes = Object.assign({}, ...(operation.security ?? []));
      const [scope] = Object.values(schemes).flat();
      operation.summary += ` (${scope ? "scope " + scope : "no key"}${scope && !schemes.jwt ? ", not for end users" : ""})`;
    }
  }
  SwaggerUIBundle({ spec, dom_id: "#docs", deepLinking: true, filter: true, defaultModelsExpandDepth: 0, validatorUrl: null });
})();
