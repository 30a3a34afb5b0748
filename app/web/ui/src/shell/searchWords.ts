// The texts of the search.
import { pick } from "../language";
import { count, plural } from "../words";

export const words = pick({
  en: {
    hint: "Search in titles and messages",
    filters: "Filters",
    everywhere: "All conversations",
    thisOne: "This one",
    byPeople: "By people",
    byAgents: "By agents",
    nothing: "Nothing was found. Try other words, or begin*",
    inPrompt: "in the prompt",
    enterOpens: "Enter opens it",
    syntax: "\"in quotes\" together · -without · begin*",
    hits: (n: number, s: number, more: number) => (more ? `${count(n)} of ${plural(more, "message")}` : `${plural(n, "message")} in ${plural(s, "conversation")}`),
    byMeaning: "by words and meaning",
    more: "Show more",
    indexing: "Older messages are still being indexed: some may be missing.",
    wordsAlone: "The search by meaning does not answer now: only words were searched.",
    messages: (n: number) => plural(n, "message"),
    titles: "Titles",
    roles: { assistant: "Agent", tool: "Tool", system: "System" },
  },
  de: {
    hint: "In Titeln und Nachrichten suchen",
    filters: "Filter",
    everywhere: "Alle Unterhaltungen",
    thisOne: "Nur diese",
    byPeople: "Von Menschen",
    byAgents: "Von Agenten",
    nothing: "Nichts gefunden. Andere Wörter nehmen, oder Anfang*",
    inPrompt: "im Prompt",
    enterOpens: "Enter öffnet",
    syntax: "„in Anführung“ zusammen · -ohne · Anfang*",
    hits: (n: number, s: number, more: number) =>
      more ? `${count(n)} von ${plural(more, "Nachricht", "Nachrichten")}` : `${plural(n, "Nachricht", "Nachrichten")} in ${plural(s, "Unterhaltung", "Unterhaltungen")}`,
    byMeaning: "nach Wörtern und Bedeutung",
    more: "Mehr zeigen",
    indexing: "Ältere Nachrichten werden noch erfasst: Einige können fehlen.",
    wordsAlone: "Die Suche nach Bedeutung antwortet gerade nicht: Nur Wörter wurden gesucht.",
    messages: (n: number) => plural(n, "Nachricht", "Nachrichten"),
    titles: "Titel",
    roles: { assistant: "Agent", tool: "Werkzeug", system: "System" },
  },
});
