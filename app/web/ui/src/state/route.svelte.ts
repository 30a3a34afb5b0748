// The page's address: #/ (a new conversation), #/s/<session>, #/s/<session>/m/<seq>, #/s/<session>/runs[/<run>],
// #/s/<session>/prompt, #/operation[/<tab>].

export type View = "chat" | "runs" | "prompt" | "operation";

export interface Route {
  view: View;
  session: string;
  /** The message to show; 0 = the newest. */
  seq: number;
  /** The run to show; "" = the newest. */
  run: string;
  /** The part of the operation to show; "" = the first. */
  tab: string;
}

export function parseRoute(hash: string): Route {
  const route: Route = { view: "chat", session: "", seq: 0, run: "", tab: "" };
  const operation = /^#\/operation(?:\/([\w-]+))?$/.exec(hash);
  if (operation) return { ...route, view: "operation", tab: operation[1] ?? "" };
  const match = /^#\/s\/([\w-]+)(?:\/m\/(\d+)|\/(runs)(?:\/([\w-]+))?|\/(prompt))?$/.exec(hash);
  const view = (match?.[3] ?? match?.[5] ?? "chat") as View;
  return { ...route, view, session: match?.[1] ?? "", seq: Number(match?.[2] ?? 0), run: match?.[4] ?? "" };
}

export function sessionHref(session: string, seq = 0): string {
  return `#/s/${session}${seq ? `/m/${seq}` : ""}`;
}

export function runsHref(session: string, run = ""): string {
  return `#/s/${session}/runs${run ? `/${run}` : ""}`;
}

export function promptHref(session: string): string {
  return `#/s/${session}/prompt`;
}

class Router {
  current = $state.raw<Route>(parseRoute(location.hash));
  /** What a failure belongs to: a conversation in all its views, or the operation. */
  readonly place = $derived(this.current.view === "operation" ? "operation" : this.current.session);
  /** Hears of another address before the next key or click does. */
  onchange: (() => void) | undefined;

  constructor() {
    addEventListener("hashchange", () => this.follow(location.hash)); // Back, and addresses that are typed
    addEventListener("click", (e) => {
      const link = e.target instanceof Element ? e.target.closest<HTMLAnchorElement>('a[href^="#/"]') : null;
      if (!link || e.defaultPrevented || e.button || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return;
      e.preventDefault(); // the browser would tell the page only after letters that are typed
      this.go(link.getAttribute("href")!);
    });
  }

  go(href: string, replace = href === location.hash): void {
    if (replace) history.replaceState(null, "", href);
    else history.pushState(null, "", href);
    this.follow(href);
  }

  private follow(hash: string): void {
    this.current = parseRoute(hash);
    this.onchange?.();
  }
}

export const router = new Router();
