// The script of the widget: one tag on a page of another origin puts a bubble there, and behind it a frame with
// Bobbin's own page. It stores nothing, and reads nothing of the page but its tag and its language. It imports
// nothing, since it is loaded without type="module".
import type { FromFrame, Look, ToFrame } from "./protocol";

const style = `
:host { all: initial; color-scheme: light dark; }
:host([data-theme="light"]) { color-scheme: light; }
:host([data-theme="dark"]) { color-scheme: dark; }
button { position: fixed; z-index: 2147483000; right: 24px; bottom: 24px; display: grid; place-items: center; width: 54px; height: 54px; padding: 0; border: 1px solid transparent;
  border-radius: 50%; background: var(--accent, light-dark(#066a82, #71c5d5)); color: var(--on-accent, light-dark(#fff, #061821)); box-shadow: 0 10px 32px -6px #0005; cursor: pointer; }
button:focus-visible { outline: 3px solid var(--accent, light-dark(#066a82, #71c5d5)); outline-offset: 3px; }
iframe { position: fixed; z-index: 2147483000; right: 24px; bottom: 90px; width: 388px; height: min(620px, 100vh - 120px); border: 1px solid light-dark(#dee3e5, #2c3236);
  border-radius: 16px; background: light-dark(#fafbfc, #14181a); box-shadow: 0 10px 32px -6px #0005; }
.left button, .left iframe { right: auto; left: 24px; }
[hidden] { display: none; }
@media (max-width: 759px) {
  iframe, .left iframe { right: 0; bottom: 0; left: 0; width: 100%; height: 86vh; height: 86dvh; box-sizing: border-box; border-width: 1px 0 0; border-radius: 16px 16px 0 0; }
  .open button { display: none; }
}`;

const icons = { chat: "M21 12a8 8 0 0 1-8 8H4l2-3.5A8 8 0 1 1 21 12Z", close: "M6 6l12 12M18 6L6 18" };

/** What is read on a color: the one of white and black that has the higher contrast (WCAG 2), at least 4.58. */
function textOn(color: string): string {
  const linear = (at: number) => {
    const c = parseInt(color.slice(at, at + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  const luminance = 0.2126 * linear(1) + 0.7152 * linear(3) + 0.0722 * linear(5);
  return 1.05 / (luminance + 0.05) >= (luminance + 0.05) / 0.05 ? "#ffffff" : "#000000";
}

function icon(): SVGPathElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  const look = { viewBox: "0 0 24 24", width: "22", height: "22", fill: "none", stroke: "currentColor", "stroke-width": "1.9", "stroke-linecap": "round", "stroke-linejoin": "round", "aria-hidden": "true" };
  for (const [name, value] of Object.entries(look)) svg.setAttribute(name, value);
  svg.append(path);
  return path;
}

class Bubble {
  private readonly shadow: ShadowRoot;
  private readonly box = document.createElement("div");
  private readonly button = document.createElement("button");
  private readonly path = icon();
  private readonly look: Look;
  private readonly url: URL;
  private frame: HTMLIFrameElement | undefined;
  private ready = false;

  constructor(private readonly tag: HTMLScriptElement) {
    const { title = "Chat", greeting = "", accent = "", theme = "", agent = "", side, lang } = tag.dataset;
    const valid = /^#[0-9a-f]{6}$/i.test(accent);
    if (accent && !valid) this.complain(`data-accent is "${accent}"; write it as #066a82`);
    this.look = { title, greeting, accent: valid ? accent : "", onAccent: valid ? textOn(accent) : "", theme, agent };
    this.url = new URL("widget.html", tag.src);
    this.url.searchParams.set("lang", lang ?? document.documentElement.lang);

    const host = document.createElement("bobbin-widget");
    if (theme) host.dataset.theme = theme;
    if (valid) host.style.setProperty("--accent", accent);
    if (valid) host.style.setProperty("--on-accent", this.look.onAccent);
    this.shadow = host.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet(); // a style element would need a place in the page's policy
    sheet.replaceSync(style);
    this.shadow.adoptedStyleSheets = [sheet];
    this.box.className = side === "left" ? "left" : "";
    this.button.type = "button";
    this.button.ariaLabel = this.button.title = title;
    this.button.append(this.path.ownerSVGElement!);
    this.button.onclick = () => this.show(this.button.ariaExpanded !== "true");
    this.box.append(this.button);
    this.shadow.append(this.box);
    this.show(false, false);
    addEventListener("message", (e) => void this.receive(e));
    document.body.append(host);
  }

  private show(open: boolean, focus = true): void {
    this.button.ariaExpanded = String(open);
    this.path.setAttribute("d", open ? icons.close : icons.chat);
    this.box.classList.toggle("open", open);
    if (open) this.frame ??= this.load();
    if (this.frame) this.frame.hidden = !open;
    if (!focus) return;
    if (!open) this.button.focus();
    else if (this.ready) this.say({ bobbin: "shown" });
  }

  /** The frame is of Bobbin's origin: the page cannot read it, nor it the page. */
  private load(): HTMLIFrameElement {
    const frame = document.createElement("iframe");
    frame.title = this.look.title;
    frame.sandbox.add("allow-scripts", "allow-same-origin", "allow-forms", "allow-popups", "allow-popups-to-escape-sandbox");
    frame.allow = "clipboard-write";
    frame.src = this.url.href;
    // A browser tells no page that a frame was refused: its own page would have spoken by then.
    frame.onload = () => setTimeout(() => this.ready || this.giveUp(), 3000);
    this.box.append(frame);
    return frame;
  }

  private giveUp(): void {
    this.complain(`${this.url.origin} does not let ${location.origin} show the widget, or does not answer. Add ${location.origin} to server.widget_origins in its bobbin.yaml`);
    this.show(false);
    (this.shadow.host as HTMLElement).remove();
  }

  private async receive(e: MessageEvent): Promise<void> {
    if (!this.frame || e.source !== this.frame.contentWindow || e.origin !== this.url.origin) return;
    const said = (e.data ?? {}) as FromFrame;
    if (said.bobbin === "close") return this.show(false);
    if (said.bobbin === "ready") {
      this.ready = true;
      this.say({ bobbin: "start", look: this.look, token: await this.token() });
      this.say({ bobbin: "shown" });
    } else if (said.bobbin === "token") {
      const token = await this.token();
      if (!token) this.complain("the server wants a token of the visitor: set data-token, or data-token-function to the name of a function that returns one");
      this.say({ bobbin: "token", token });
    }
  }

  private say(what: ToFrame): void {
    this.frame?.contentWindow?.postMessage(what, this.url.origin);
  }

  /** The visitor's token, asked for anew each time. */
  private async token(): Promise<string> {
    const { token = "", tokenFunction } = this.tag.dataset;
    if (!tokenFunction) return token;
    const get = (window as unknown as Record<string, unknown>)[tokenFunction];
    try {
      if (typeof get === "function") return String((await (get as () => unknown)()) ?? "");
      this.complain(`data-token-function is "${tokenFunction}", which is no function of this page`);
    } catch (e) {
      this.complain(`${tokenFunction}() failed: ${String(e)}`);
    }
    return "";
  }

  private complain(text: string): void {
    console.error(`Bobbin's widget: ${text}.`);
  }
}

function start(): void {
  const tag = document.currentScript;
  if (!(tag instanceof HTMLScriptElement)) return console.error('Bobbin\'s widget: load widget.js by <script src="…">, without type="module".');
  if (document.querySelector("bobbin-widget")) return;
  if (document.body) new Bubble(tag);
  else addEventListener("DOMContentLoaded", () => new Bubble(tag));
}

start();
