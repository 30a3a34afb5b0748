// The texts of threadWords.ts in German.
import { count, plural } from "../text/count";

export const own = {
  percent: (n: number) => `${n} %`,
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
  tight: "Es wird voll, und keine Zusammenfassung wird rechtzeitig fertig",
  floor: (culprit: string, tokens: number, usable: number) =>
    `Passt nicht: der größte Teil (${culprit}) hat ${count(tokens)} von ${count(usable)} Token.`,
  noContext: "Dieser Schlüssel darf den Kontext nicht sehen",
  lastFailure: (reason: string) => `Die letzte Zusammenfassung schlug fehl: ${reason}`,
  seconds: (n: number) => `${n} s`,
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
  reasons: {
    "the summary model cannot be used": "Das Modell für Zusammenfassungen ist nicht nutzbar",
    "the spend limit of the day is reached": "Das Ausgabenlimit des Tages ist erreicht",
    "the summary model failed too often and is paused": "Das Modell für Zusammenfassungen fiel zu oft aus und pausiert",
    "the context window of the summary model is too small": "Das Fenster des Modells für Zusammenfassungen ist zu klein",
    "the answer was empty": "Die Antwort war leer",
    "the answer was cut off at the output limit": "Die Antwort war zu lang",
    "the summary was not smaller than what it replaces": "Die Zusammenfassung war nicht kleiner als die Nachrichten",
    "the answer said too little about the messages": "Die Antwort sagte zu wenig über die Nachrichten",
    "the answer left out the earlier summary": "Die Antwort ließ die frühere Zusammenfassung aus",
    "the strategy failed": "Die Strategie schlug fehl",
  },
};
