// The page that the widget's frame is in: it says how the widget looks and who the visitor is.
import { auth } from "../state/auth.svelte";
import type { FromFrame, Look, ToFrame } from "./protocol";

const clip = (value: unknown, most: number) => (typeof value === "string" ? value.slice(0, most) : "");
const color = (value: unknown) => (typeof value === "string" && /^#[0-9a-f]{6}$/i.test(value) ? value : "");

class Host {
  /** Undefined until the page has spoken. */
  look: Look | undefined;
  /** The page has no other token than one that was refused. */
  ended = $state(false);
  /** Whether the frame is in a page at all. */
  readonly present = parent !== window;
  /** Called when the page has said who the visitor is. */
  onstart?: () => void;
  /** Called whenever the person opens the widget. */
  onshown?: () => void;
  private origin = "";
  private tries = 0;
  private waiting: (() => void) | undefined;

  constructor() {
    auth.secret = ""; // a key of Bobbin's own page is not the visitor's
    addEventListener("message", (e: MessageEvent<Partial<ToFrame>>) => this.receive(e));
    this.say({ bobbin: "ready" });
  }

  close(): void {
    this.say({ bobbin: "close" });
  }

  /** Asks the page for another token after a 401; false = it has none that the server takes. */
  async renew(): Promise<boolean> {
    const refused = auth.secret;
    if (++this.tries <= 2) {
      await new Promise<void>((done) => {
        this.waiting = done;
        this.say({ bobbin: "token" });
      });
    }
    this.ended = this.tries > 2 || auth.secret === refused;
    if (!this.ended) auth.problem = undefined;
    return !this.ended;
  }

  /** The server takes the token: the next refusal is another one. */
  accepted(): void {
    this.tries = 0;
    this.ended = false;
  }

  private say(what: FromFrame): void {
    if (this.present) parent.postMessage(what, this.origin || "*"); // nothing in it is secret
  }

  /** Only from the page around the frame, which the server's policy (frame-ancestors) allows to be there. */
  private receive(e: MessageEvent<Partial<ToFrame>>): void {
    if (!this.present || e.source !== parent || (this.origin && e.origin !== this.origin)) return;
    const said = e.data ?? {};
    if (said.bobbin === "start" && !this.look) {
      this.origin = e.origin;
      auth.secret = clip(said.token, 16_384).trim();
      this.look = {
        title: clip(said.look?.title, 100),
        greeting: clip(said.look?.greeting, 2000),
        accent: color(said.look?.accent),
        onAccent: color(said.look?.onAccent),
        theme: clip(said.look?.theme, 10),
        agent: clip(said.look?.agent, 100),
      };
      this.onstart?.();
    } else if (said.bobbin === "token") {
      auth.secret = clip(said.token, 16_384).trim();
      this.waiting?.();
      this.waiting = undefined;
    } else if (said.bobbin === "shown") this.onshown?.();
  }
}

export const host = new Host();
