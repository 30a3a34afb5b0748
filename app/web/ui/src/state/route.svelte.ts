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

  constructor() {
    addEventListener("hashchange", () => (this.current = parseRoute(location.hash)));
  }

  /** What reads it is drawn before the next key: its event comes later than letters that are typed. */
  go(href: string, replace = false): void {
    if (replace) history.replaceState(null, "", href);
    else location.hash = href.slice(1);
    this.current = parseRoute(href);
  }
}

export const router = new Router();
