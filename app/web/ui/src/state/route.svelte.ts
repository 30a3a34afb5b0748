// The page's address: #/ (a new conversation), #/s/<session>, #/s/<session>/m/<seq>.

export interface Route {
  session: string;
  /** The message to show; 0 = the newest. */
  seq: number;
}

export function parseRoute(hash: string): Route {
  const match = /^#\/s\/([\w-]+)(?:\/m\/(\d+))?$/.exec(hash);
  return { session: match?.[1] ?? "", seq: Number(match?.[2] ?? 0) };
}

export function sessionHref(session: string, seq = 0): string {
  return `#/s/${session}${seq ? `/m/${seq}` : ""}`;
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
