// Colors for code. Loaded when a block that needs them is drawn; a worker loads this same file, and colors beside the
// page's thread: on text that is long or hostile, an expression of a language can take seconds.
import type { LanguageFn } from "highlight.js";
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import kotlin from "highlight.js/lib/languages/kotlin";
import makefile from "highlight.js/lib/languages/makefile";
import markdown from "highlight.js/lib/languages/markdown";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import shell from "highlight.js/lib/languages/shell";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

type Answer = string | undefined;

const longest = 5_000; // ms, with the loading
let worker: Worker | undefined;
let queue: Promise<Answer> = Promise.resolve(undefined);

/** Markup of the code, whose text is escaped; undefined for a language that is not here, or if it takes too long. */
export function highlight(code: string, lang: string): Promise<Answer> {
  return (queue = queue.then(() => ask(code, lang)));
}

function ask(code: string, lang: string): Promise<Answer> {
  const current = (worker ??= new Worker(import.meta.url, { type: "module" }));
  return new Promise((resolve) => {
    const finish = (html: Answer) => {
      clearTimeout(timer);
      resolve(html);
    };
    const giveUp = () => {
      current.terminate();
      worker = undefined;
      finish(undefined);
    };
    const timer = setTimeout(giveUp, longest);
    current.onerror = giveUp;
    current.onmessage = ({ data }: MessageEvent<Answer>) => finish(data);
    current.postMessage([code, lang]);
  });
}

function answer({ data: [code, language] }: MessageEvent<[code: string, language: string]>) {
  postMessage(hljs.getLanguage(language) && hljs.highlight(code, { language, ignoreIllegals: true }).value);
}

if (typeof document === "undefined") {
  const languages: Record<string, LanguageFn> = {
    bash, c, cpp, csharp, css, diff, dockerfile, go, ini, java, javascript, json, kotlin, makefile, markdown, php, python, ruby, rust, shell, sql, typescript, xml, yaml,
  };
  for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language);
  hljs.registerAliases("json5", { languageName: "json" });
  hljs.registerAliases(["svelte", "vue"], { languageName: "xml" });
  onmessage = answer;
}
