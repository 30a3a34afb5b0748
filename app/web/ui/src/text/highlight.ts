// Colors for code, by what languages have in common: comments, texts, numbers, and words of their own. Loaded when a
// block that needs them is drawn.
import { escapeHtml } from "./markdown";

/** Expressions by the kind of what they find; the first that fits counts. None looks far ahead for an end that may be missing. */
type Rules = Partial<Record<"comment" | "text" | "number" | "word" | "added" | "removed", string>>;

const { raw } = String;
const slashes = raw`//.*|/\*[^]*?(?:\*/|(?![^]))`;
const hash = raw`(?<!\S)#.*`;
const double = raw`"(?:\\.|[^"\\\n])*"?`;
const single = raw`'(?:\\.|[^'\\\n])*'?`;
const letter = raw`'(?:\\[^'\n]{1,9}|\\'|[^'\\\n])'`; // of one character: a lifetime of Rust is none
const ticks = "`(?:\\\\[^]|[^`\\\\])*`?";
const triple = raw`"""[^]*?(?:"""|(?![^]))|'''[^]*?(?:'''|(?![^]))`;
const pattern = raw`(?<=[=(,:!&|?{};]\s?)/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n]){0,99}\]|[^/\\\n[]){1,199}/[a-z]*`;
const digits = raw`\b(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\w*`;
const number = raw`${digits}|(?<!\w)@\w[\w.]*`;
const word = (words: string) => raw`(?<![\w.$])(?:${words.replaceAll(" ", "|")})(?![\w$])`;

const script = "async await break case catch class const continue default delete do else export extends false finally for from function get if import in instanceof let new null of return set static super switch this throw true try typeof undefined var void while yield";
const typed = "abstract any as boolean declare enum implements infer interface is keyof namespace never number private protected public readonly satisfies string type unknown";
const brackets = "abstract boolean break byte case catch char class const continue default do double else enum extends false final finally float for if implements import instanceof int interface long new null package private protected public record return short static super switch synchronized this throw throws true try var void while yield";
const python = "False None True and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return self try while with yield";
const go = "any bool break byte case chan const continue default defer else error fallthrough false float64 for func go goto if import int int64 interface iota map nil package range return rune select string struct switch true type var";
const rust = "Self as async await bool break const continue crate dyn else enum extern f64 false fn for i32 i64 if impl in let loop match mod move mut pub ref return self static str struct super trait true type u32 u64 u8 unsafe use usize where while";
const c = "NULL auto bool break case catch char class const constexpr continue default delete do double else enum extern false float for goto if inline int long namespace new nullptr private protected public return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void volatile while";
const shell = "case do done elif else esac export fi for function if in local return select then until while";
const sql = "add all alter and as asc begin between by case check column commit constraint create cross default delete desc distinct drop else end exists false for foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references returning right rollback select set table then true union unique update using values view when where with";

const languages: Record<string, Rules> = {
  bash: { comment: hash, text: `${double}|${single}`, number: raw`\$\w+|\$\{[^}\n]{0,99}\}|${digits}`, word: word(shell) },
  c: { comment: slashes, text: `${double}|${letter}`, number, word: raw`^[ \t]*#[ \t]*\w+|${word(c)}` },
  css: { comment: slashes.slice(5), text: `${double}|${single}`, number: raw`#[\da-fA-F]{3,8}\b|${digits}%?`, word: raw`@[\w-]+|(?<=[{;\s])[\w-]+(?=\s*:[^:{}\n]*(?:[;}]|$))` },
  diff: { number: raw`^(?:@@|diff |index |--- |\+\+\+ ).*`, added: raw`^\+.*`, removed: "^-.*" },
  go: { comment: slashes, text: `${double}|${letter}|${ticks}`, number: digits, word: word(go) },
  java: { comment: slashes, text: `${triple}|${double}|${letter}`, number, word: word(brackets) },
  javascript: { comment: slashes, text: `${double}|${single}|${ticks}|${pattern}`, number, word: word(script) },
  json: { comment: slashes, word: raw`"(?:\\.|[^"\\\n])*"(?=\s*:)`, text: double, number: raw`${digits}|\b(?:true|false|null)\b` },
  python: { comment: hash, text: `${triple}|${double}|${single}`, number, word: word(python) },
  rust: { comment: slashes, text: `${double}|${letter}`, number: raw`${digits}|#!?\[[^\]\n]{0,199}\]`, word: word(rust) },
  sql: { comment: raw`--.*|${slashes}`, text: "'[^']*'?", number: digits, word: word(`${sql} ${sql.toUpperCase()}`) },
  typescript: { comment: slashes, text: `${double}|${single}|${ticks}|${pattern}`, number, word: word(`${script} ${typed}`) },
  xml: { comment: "<!--[^]*?(?:-->|(?![^]))", text: `(?<==)(?:"[^"]*"|'[^']*')`, number: raw`(?<![\w:.-])[\w:.-]{1,99}(?==["'])|&#?\w{1,9};`, word: raw`</?[\w:.-]+|/?>|<[!?][^>]{0,199}>` },
  yaml: { comment: hash, word: raw`^[ \t]*(?:- +)*[\w.$/"'-]+(?=:(?:\s|$))`, text: `${double}|${single}`, number: raw`${digits}|\b(?:true|false|null)\b|(?<=\s)[&*!][\w-]+` },
};

/** What else people and models call them, or what looks much the same. */
const aliases: Record<string, string> = {
  sh: "bash", zsh: "bash", shell: "bash", console: "bash", dockerfile: "bash", makefile: "bash", h: "c", cpp: "c", "c++": "c", patch: "diff",
  golang: "go", csharp: "java", cs: "java", kotlin: "java", js: "javascript", jsx: "javascript", mjs: "javascript", cjs: "javascript",
  jsonc: "json", json5: "json", py: "python", rs: "rust", ts: "typescript", tsx: "typescript", mts: "typescript", cts: "typescript",
  html: "xml", xhtml: "xml", xsl: "xml", plist: "xml", svg: "xml", svelte: "xml", vue: "xml", yml: "yaml", toml: "yaml",
};

/** Markup of the code, whose text is escaped; undefined for a language that is not here. */
export function highlight(code: string, lang: string): string | undefined {
  const name = aliases[lang] ?? lang;
  if (!Object.hasOwn(languages, name)) return undefined;
  const rules = Object.entries(languages[name]!).map(([kind, found]) => `(?<${kind}>${found})`);
  let [html, end] = ["", 0];
  for (const match of code.matchAll(new RegExp(rules.join("|"), "gm"))) {
    const [kind] = Object.entries(match.groups!).find(([, found]) => found)!;
    html += `${escapeHtml(code.slice(end, match.index))}<span class="code-${kind}">${escapeHtml(match[0])}</span>`;
    end = match.index + match[0].length;
  }
  return html + escapeHtml(code.slice(end));
}
