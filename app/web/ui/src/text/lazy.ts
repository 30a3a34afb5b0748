// The Markdown parser is a third of the page's code: it loads beside the first messages.
import type Markdown from "./markdown";

let module: typeof import("./markdown") | undefined;

/** Has to be done before the first message is drawn. */
export async function loadMarkdown(): Promise<typeof import("./markdown")> {
  return (module ??= await import("./markdown"));
}

export function newMarkdown(): Markdown {
  if (!module) throw new Error("loadMarkdown was not awaited");
  return new module.default();
}
