// Colors for code: loaded when a block that needs them is drawn, each language for itself.
import hljs from "highlight.js/lib/core";
import type { LanguageFn } from "highlight.js";

const languages: Record<string, () => Promise<{ default: LanguageFn }>> = {
  bash: () => import("highlight.js/lib/languages/bash"),
  c: () => import("highlight.js/lib/languages/c"),
  css: () => import("highlight.js/lib/languages/css"),
  diff: () => import("highlight.js/lib/languages/diff"),
  go: () => import("highlight.js/lib/languages/go"),
  java: () => import("highlight.js/lib/languages/java"),
  javascript: () => import("highlight.js/lib/languages/javascript"),
  json: () => import("highlight.js/lib/languages/json"),
  python: () => import("highlight.js/lib/languages/python"),
  rust: () => import("highlight.js/lib/languages/rust"),
  sql: () => import("highlight.js/lib/languages/sql"),
  typescript: () => import("highlight.js/lib/languages/typescript"),
  xml: () => import("highlight.js/lib/languages/xml"),
  yaml: () => import("highlight.js/lib/languages/yaml"),
};

/** What else people and models call them. */
const aliases: Record<string, string> = {
  sh: "bash", zsh: "bash", shell: "bash", console: "bash", h: "c", patch: "diff", golang: "go", js: "javascript", jsx: "javascript",
  mjs: "javascript", cjs: "javascript", jsonc: "json", json5: "json", py: "python", rs: "rust", ts: "typescript", tsx: "typescript",
  mts: "typescript", cts: "typescript", html: "xml", xhtml: "xml", xsl: "xml", plist: "xml", svg: "xml", yml: "yaml",
};

/** Markup of the code, or undefined for a language that is not here. highlight.js escapes the text itself. */
export async function highlight(code: string, lang: string): Promise<string | undefined> {
  const name = aliases[lang] ?? lang;
  if (!Object.hasOwn(languages, name)) return undefined;
  if (!hljs.getLanguage(name)) hljs.registerLanguage(name, (await languages[name]!()).default);
  return hljs.highlight(code, { language: name, ignoreIllegals: true }).value;
}
