// Markdown to markup that cannot run, fetch or style anything: HTML becomes text, images become links that name their
// host, since the page's policy lets nothing be loaded from another one, not even after a click,
// and DOMPurify removes whatever is not in the list below.
import DOMPurify from "dompurify";
import { words } from "../words";
import { Marked, type Token, type Tokens, type TokensList } from "marked";

/** A top-level block; neighbors are one in what is drawn whole. Equal blocks have equal strings, so that a settled one is not drawn again. */
export type Block =
  | { kind: "html"; html: string }
  | { kind: "plain"; text: string }
  | { kind: "code"; text: string; lang: string; open: boolean };

const longestLine = 20_000; // beyond it the parser's expressions are slow, and nobody reads it as prose
const longestText = 400_000;
const mostColumns = 60;
const mostCells = 4_000;

/** Headings of a message begin at level 3 and skip none, whatever the model wrote. */
const noHeadings = { base: 0, last: 2 };
let outline = { ...noHeadings };
let inLink = false;

const marked = new Marked({ gfm: true, breaks: false, async: false });

marked.use({
  renderer: {
    html({ text }) {
      return /^<br\s*\/?>$/i.test(text.trim()) ? "<br>" : escapeHtml(text);
    },
    heading({ tokens, depth }) {
      outline.base ||= depth;
      const level = Math.min(3 + Math.max(0, depth - outline.base), outline.last + 1, 6);
      outline.last = level;
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`;
    },
    link({ href, tokens }) {
      inLink = true;
      const text = this.parser.parseInline(tokens);
      inLink = false;
      return linkTo(href, text) ?? text;
    },
    image({ href, text }) {
      const label = escapeHtml(text || words.image);
      if (inLink) return label;
      const host = URL.canParse(href) ? `, ${escapeHtml(new URL(href).host)}` : "";
      return linkTo(href, `${label}${host} ↗`, "image") ?? `<span class="image">${label}</span>`;
    },
    checkbox({ checked }) {
      return `<input type="checkbox" disabled aria-label="${checked ? words.taskDone : words.taskOpen}"${checked ? " checked" : ""}> `;
    },
    table(token) {
      if (tooWide(token)) return plain(token.raw); // inside a list or a quote
      const row = (cells: Tokens.TableCell[], tag: "th" | "td") =>
        `<tr>${cells.map((c) => `<${tag}${c.align ? ` align="${c.align}"` : ""}>${this.parser.parseInline(c.tokens)}</${tag}>`).join("")}</tr>`;
      const body = token.rows.map((cells) => row(cells, "td")).join("");
      const head = row(token.header, "th");
      return `<div class="table" tabindex="0" role="group" aria-label="${words.table}"><table><thead>${head}</thead><tbody>${body}</tbody></table></div>`;
    },
  },
});

const allowed = {
  ALLOWED_TAGS: [
    "a", "b", "blockquote", "br", "code", "del", "div", "em", "h3", "h4", "h5", "h6", "hr", "input", "li", "ol", "p",
    "pre", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
  ],
  ALLOWED_ATTR: ["href", "rel", "target", "class", "align", "type", "checked", "disabled", "start", "tabindex", "role", "aria-label"],
  // Only addresses are compared with the expression below.
  ADD_URI_SAFE_ATTR: ["align", "rel", "target", "type", "checked", "disabled", "start", "tabindex", "aria-label"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
};

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

function linkTo(href: string, html: string, cls = ""): string | undefined {
  let url: URL;
  try {
    url = new URL(href);
  } catch {
    return undefined; // relative: it would lead into this page
  }
  if (!["http:", "https:", "mailto:"].includes(url.protocol)) return undefined;
  const name = cls ? ` class="${cls}"` : "";
  return `<a${name} href="${escapeHtml(url.href)}" target="_blank" rel="noopener noreferrer">${html}</a>`;
}

function tooWide(table: Tokens.Table): boolean {
  return table.header.length > mostColumns || table.header.length * table.rows.length > mostCells;
}

function plain(text: string): string {
  return `<div class="plain">${escapeHtml(text)}</div>`;
}

function renderBlock(token: Token, links: TokensList["links"], last: boolean): Block {
  if (token.type === "code" && !/^ {4}|^\t/.test(token.raw)) {
    const code = token as Tokens.Code;
    const open = last && !/\n[ >]*(?:```+|~~~+)\s*$/.test(code.raw);
    return { kind: "code", text: code.text, lang: (code.lang ?? "").split(/\s/)[0]!.slice(0, 40), open };
  }
  if (token.type === "table" && tooWide(token as Tokens.Table)) return { kind: "plain", text: token.raw };
  const list = [token] as unknown as TokensList;
  list.links = links;
  let html: string;
  try {
    html = marked.parser(list);
  } catch {
    html = plain(token.raw); // nested too deep
  }
  return { kind: "html", html: token.type === "html" ? `<div>${html}</div>` : html }; // not clean yet
}

export function tooLong(text: string): boolean {
  if (text.length > longestText) return true;
  let from = 0;
  for (;;) {
    const end = text.indexOf("\n", from);
    if ((end < 0 ? text.length : end) - from > longestLine) return true;
    if (end < 0) return false;
    from = end + 1;
  }
}

/** Text into blocks. While it grows, the blocks before the last one are settled and not parsed again. */
export default class Markdown {
  private settled: Block[] = [];
  private offset = 0;
  private previous = "";
  private links: TokensList["links"] = {};
  private outline = { ...noHeadings };

  render(text: string, growing: boolean): Block[] {
    if (!text.startsWith(this.previous)) this.reset();
    this.previous = text;
    if (tooLong(text)) return [{ kind: "plain", text }];
    let tokens: TokensList;
    try {
      tokens = marked.lexer(text.slice(this.offset));
    } catch {
      return [...this.settled, { kind: "plain", text: text.slice(this.offset) }];
    }
    Object.assign(this.links, tokens.links);
    // At the end all of it is read once more if a link may be defined behind its use.
    if (!growing && this.offset > 0 && Object.keys(this.links).length > 0) {
      this.reset();
      return this.render(text, false);
    }
    const blocks = tokens.filter((t) => t.type !== "space" && t.type !== "def");
    const last = blocks.at(-1);
    outline = { ...this.outline };
    const drawn: Block[] = [];
    for (const t of blocks) {
      if (t === last && growing) this.outline = { ...outline }; // that of the blocks before it
      const [block, before] = [renderBlock(t, this.links, t === last && growing), drawn.at(-1)];
      // DOMPurify makes a document each time: what is drawn whole is few pieces.
      if (block.kind === "html" && before?.kind === "html" && !growing && this.offset === 0) before.html += block.html;
      else drawn.push(block);
    }
    const rendered = drawn.map((b) => (b.kind === "html" ? { ...b, html: DOMPurify.sanitize(b.html, allowed) } : b));
    const all = [...this.settled, ...rendered];
    if (growing && blocks.length > 1) this.settle(tokens, last!, rendered);
    return all;
  }

  private settle(tokens: Token[], last: Token, rendered: Block[]): void {
    for (const token of tokens) {
      if (token === last) break;
      this.offset += token.raw.length;
    }
    this.settled = [...this.settled, ...rendered.slice(0, -1)];
  }

  private reset(): void {
    this.settled = [];
    this.offset = 0;
    this.previous = "";
    this.links = {};
    this.outline = { ...noHeadings };
  }
}
