// The page's sentences for what the server says of errors. They load with the first one; English has none: the server's are shown.
import { language, textOf } from "./language";

const sources = { en: undefined, de: () => import("./problemWords.de") };

let sentences = $state.raw<Readonly<Record<string, string>>>({});
let asked = false;

async function load() {
  asked = true;
  try {
    sentences = (await sources[language]?.())?.sentences ?? {};
  } catch {
    asked = false; // the server's stand meanwhile
  }
}

/** The page's sentence for a code of an error, or for a reason in the server's words; the other one, where there is none. */
export function sentenceOf(code: string, other: string): string {
  if (!asked) void load();
  return textOf(sentences, code, other);
}
