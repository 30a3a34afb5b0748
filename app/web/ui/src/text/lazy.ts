// The Markdown parser is a third of the page's code: it loads beside the first messages.
import type Markdown from "./markdown";

let module: typeof import("./markdown") | undefined;

let loading: Promise<typeof import("./markdown")> | undefined;

/** Has to be done before the first message is drawn. Whoever waits for it goes on after those that asked before. */
export function loadMarkdown(): Promise<typeof import("./markdown")> {
  return (loading ??= import("./markdown").then(
    (m) => (module = m),
    (e) => {
      loading = undefined;
      throw e;
    },
  ));
}

export function newMarkdown(): Markdown {
  if (!module) throw new Error("loadMarkdown was not awaited");
  return new module.default();
}
