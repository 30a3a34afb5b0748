// The texts of threadWords.ts in German.
import type { Schema } from "../api/http";
import { textOf } from "../language";
import { count, plural } from "../text/count";

export const own = {
  percent: (n: number) => `${count(n)} %`,
  tooLarge: "Zu groß",
  unknown: "–",
  meter: (used: string, usable: number, percent: number, hint: string) =>
    `Kontext: ${used} von ${count(usable)} Token, ${percent} Prozent. ${hint}`,
  meterUnknown: "Kontext: noch nicht bekannt",
  prompt: "Prompt",
  withDraft: (n: number) => `+ ${count(n)} mit diesem Entwurf.`,
  turnsLeft: (n: number) =>
    n === 0 ? "Nächste Zusammenfassung mit der nächsten Runde" : `Nächste Zusammenfassung in etwa ${plural(n, "Runde", "Runden")}`,
  fullIn: (n: number) => (n === 0 ? "Voll mit der nächsten Runde" : `Voll in etwa ${plural(n, "Runde", "Runden")}, ohne Zusammenfassungen`),
  due: "Die nächste Nachricht löst eine Zusammenfassung aus",
  dueDraft: (messages: number, waits: boolean) =>
    `Diese Nachricht löst eine Zusammenfassung von ${plural(messages, "Nachricht", "Nachrichten")} aus${waits ? " und wartet darauf" : ", im Hintergrund"}`,
  stayShortened: (n: number) => `${plural(n, "Nachricht ist", "Nachrichten sind")} gekürzt`,
  stayLeftOut: (n: number) => `${plural(n, "Nachricht ist", "Nachrichten sind")} weggelassen`,
  tight: "Es wird voll, und keine Zusammenfassung wird rechtzeitig fertig",
  floor: ({ culprit, tokens, usable }: Schema["ContextFloor"]): string =>
    `Passt nicht: ${count(tokens)} Token lassen sich nicht verkleinern, ${count(usable)} passen. Den größten Teil (${textOf(own.culprits, culprit)}) kürzen oder ein Modell mit größerem Fenster nehmen.`,
  noContext: "Dieser Schlüssel darf den Kontext nicht sehen",
  lastFailure: (reason: string) => `Die letzte Zusammenfassung schlug fehl: ${reason}`,
  seconds: (n: number) => `${count(n)} s`,
  atWork: (n: number | undefined, waits: boolean) =>
    `${n ? `${plural(n, "Nachricht wird", "Nachrichten werden")} zusammengefasst` : "Wird zusammengefasst"}${waits ? ", die neue Nachricht wartet" : ""}`,
  label: {
    summary: (v: number) => (v ? `in Zusammenfassung v${v}` : "in einer Zusammenfassung"),
    compacted: "in Notizen",
    masked: "ausgeblendet",
    shortened: "gekürzt",
    left_out: "weggelassen",
  },
  activates: (v: number) => `Die bereitliegende Zusammenfassung v${v} wird benutzt`,
  sizes: (ofPrompt: boolean, before: number, after: number) =>
    `${ofPrompt ? "Prompt" : "Nachrichten"} ${count(before)} → ${count(after)}`,
  textOf: (n: number) => `Text mit ${count(n)} Token`,
  summary: (v: number) => `Zusammenfassung v${v}`,
  standsFor: (n: number) => (n === 1 ? " steht für die Nachricht darüber" : ` steht für die ${count(n)} Nachrichten darüber`),
  standsForRange: (n: number, from: number, to: number) => ` steht für ${plural(n, "Nachricht", "Nachrichten")}, #${from} bis #${to}`,
  forRange: (from: number, to: number) => ` für #${from} bis #${to}`,
  madeWithout: ", ohne Modell gemacht",
  tokens: (n: number) => `${count(n)} Token`,
  undoTitle: (n: number) => `Rückgängig: ${plural(n, "Nachricht kommt", "Nachrichten kommen")} wörtlich zurück`,
  editTitle: (v: number) => `Zusammenfassung v${v} bearbeiten`,
  saveAs: (v: number) => `Als v${v} speichern`,
  stays: (v: number) => `v${v} bleibt`,
  expand: "Zusammenfassung zeigen",
  fold: "Zusammenfassung zuklappen",
  onlyNewest: (v: number) => `Jetzt ist v${v} in Gebrauch. Der Text ist noch da: über jene Fassung speichern oder abbrechen.`,
  toastUndone: (v: number) => `Zusammenfassung v${v} zurückgenommen`,
  summarizeAnd: "Jetzt zusammenfassen, und behalten",
  keepExample: "Namen von Einstellungen, Größen und Laufzeiten",
  summarize: "Zusammenfassen",
  madeWithoutModel: (reason: string) => `Ohne Modell erstellt: ${reason}.`,
  culprits: { "system prompt": "System-Prompt", "tool definitions": "Werkzeuge", "pinned messages": "angeheftete Nachrichten", message: "Nachricht" },
  warnings: {
    fallback: "Das Modell kann nicht antworten; für diese Antwort vertritt es ein anderes.",
    overflow: "Dem Anbieter war der Prompt zu lang; ein kleinerer wird gesendet.",
    refused: "Der Anbieter hat ein Bild, eine Datei oder einen Text abgelehnt; es geht ohne weiter.",
    shortened: "Die Nachricht passt nicht ganz: das Modell sieht ihren Anfang und ihr Ende, oder von einem PDF nur den Text.",
    near_limit: "Das Fenster ist fast voll, und keine Zusammenfassung macht Platz: ein Modell mit größerem Fenster nehmen oder zusammenfassen.",
  },
};
