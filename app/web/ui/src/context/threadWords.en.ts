// The texts of threadWords.ts in English.
import type { Schema } from "../api/http";
import { count, plural } from "../text/count";

export const own = {
  percent: (n: number) => `${count(n)} %`,
  tooLarge: "Too large",
  unknown: "–",
  meter: (used: string, usable: number, percent: number, hint: string) =>
    `Context: ${used} of ${count(usable)} tokens, ${percent} percent. ${hint}`,
  meterUnknown: "Context: not known yet",
  prompt: "Prompt",
  withDraft: (n: number) => `+ ${count(n)} with this draft.`,
  turnsLeft: (n: number) => (n === 0 ? "Next summary with the next turn" : `Next summary in about ${plural(n, "turn")}`),
  fullIn: (n: number) => (n === 0 ? "Full with the next turn" : `Full in about ${plural(n, "turn")}, no summaries`),
  due: "The next message brings a summary",
  dueDraft: (messages: number, waits: boolean) =>
    `This message brings a summary of ${plural(messages, "message")}${waits ? ", and waits for it" : " in the background"}`,
  stayShortened: (n: number) => `${plural(n, "message is", "messages are")} shortened`,
  stayLeftOut: (n: number) => `${plural(n, "message is", "messages are")} left out`,
  tight: "It gets full, and no summary will be ready in time",
  floor: ({ culprit, tokens, usable }: Schema["ContextFloor"]): string =>
    `Does not fit: ${count(tokens)} tokens cannot be shrunk, ${count(usable)} fit. The largest part is the ${culprit}: shorten it, or use a model with a larger window.`,
  noContext: "This key may not see the context",
  lastFailure: (reason: string) => `The last summary failed: ${reason}`,
  seconds: (n: number) => `${count(n)} s`,
  atWork: (n: number | undefined, waits: boolean) =>
    `Summarizing${n ? ` ${plural(n, "message")}` : ""}${waits ? ", your message waits" : ""}`,
  label: {
    summary: (v: number) => (v ? `in summary v${v}` : "in a summary"),
    compacted: "in notes",
    masked: "masked",
    shortened: "shortened",
    left_out: "left out",
  },
  activates: (v: number) => `Summary v${v}, which is ready, is used`,
  sizes: (ofPrompt: boolean, before: number, after: number) =>
    `${ofPrompt ? "prompt" : "messages"} ${count(before)} → ${count(after)}`,
  textOf: (n: number) => `Text of ${plural(n, "token")}`,
  summary: (v: number) => `Summary v${v}`,
  standsFor: (n: number) => ` stands for the ${plural(n, "message")} above`,
  standsForRange: (n: number, from: number, to: number) => ` stands for ${plural(n, "message")}, #${from} to #${to}`,
  forRange: (from: number, to: number) => ` for #${from} to #${to}`,
  madeWithout: ", made without a model",
  tokens: (n: number) => plural(n, "token"),
  undoTitle: (n: number) => `Undo: ${plural(n, "message comes", "messages come")} back word for word`,
  editTitle: (v: number) => `Edit summary v${v}`,
  saveAs: (v: number) => `Save as v${v}`,
  stays: (v: number) => `v${v} stays`,
  expand: "Show the summary",
  fold: "Fold the summary",
  onlyNewest: (v: number) => `Now v${v} is in use. Your text is still here: save it over that version, or cancel.`,
  toastUndone: (v: number) => `Summary v${v} undone`,
  summarizeAnd: "Summarize now, and keep",
  keepExample: "setting names, sizes and run times",
  summarize: "Summarize",
  madeWithoutModel: (reason: string) => `Made without a model: ${reason}.`,
  // What the server says in English, by its own words.
  culprits: {} as Record<string, string>,
  warnings: {} as Record<string, string>,
};
