// The texts of the empty page.
import { pick } from "../language";

/** What the empty page proposes to ask the demo model, which knows English alone. */
export const demoQuestions: [string, string, string] = [
  "My name is Ada. What is 17 × 23?",
  "Tell me, step by step, what happens to a long conversation",
  "What is my name, and how do you know?",
];

export const words = pick({
  en: {
    hello: "A conversation that can go on for ever",
    helloDemo:
      "You are talking to the demo model. It knows a few rules and sees 8,192 tokens at a time, so you can watch its window fill up and be summarized. It is no help with real work.",
    helloAgent: (agent: string, what: string) => `You are talking to ${agent}. ${what}`,
    helloRest: "What does not fit into its window any more is summarized, and you can see what and when.",
    tries: [
      { text: "My name is Ada. What is 17 × 23?", why: "A tool call that you can open" },
      { text: "Tell me, step by step, what happens to a long conversation", why: "The window fills up; the meter shows how far" },
      { text: "What is my name, and how do you know?", why: "What was said before is in the prompt, or in a summary" },
    ] as const,
    realModel: "For a real model, start Bobbin with a key. The conversations stay.",
    realModelCommand: "OPENAI_API_KEY=… bobbin serve",
    otherModels: "Or ANTHROPIC_API_KEY, GEMINI_API_KEY, or Ollama running on this machine.",
  },
  de: {
    hello: "Eine Unterhaltung, die nie enden muss",
    helloDemo:
      "Hier antwortet das Demo-Modell. Es kennt ein paar Regeln und sieht 8.192 Token auf einmal; so lässt sich zusehen, wie sein Fenster sich füllt und zusammengefasst wird. Es versteht nur Englisch, und für echte Arbeit taugt es nicht.",
    helloAgent: (agent: string, what: string) => `Hier antwortet ${agent}. ${what}`,
    helloRest: "Was nicht mehr in sein Fenster passt, wird zusammengefasst; was und wann, ist zu sehen.",
    tries: [
      { text: "Ich heiße Ada. Was ist 17 × 23?", why: "Ein Werkzeugaufruf zum Aufklappen" },
      { text: "Erzähle Schritt für Schritt, was mit einer langen Unterhaltung geschieht", why: "Das Fenster füllt sich; die Anzeige sagt, wie weit" },
      { text: "Wie heiße ich, und woher weißt du das?", why: "Früher Gesagtes steht im Prompt oder in einer Zusammenfassung" },
    ] as const,
    realModel: "Für ein echtes Modell Bobbin mit einem Schlüssel starten. Die Unterhaltungen bleiben.",
    realModelCommand: "OPENAI_API_KEY=… bobbin serve",
    otherModels: "Oder ANTHROPIC_API_KEY, GEMINI_API_KEY, oder Ollama auf diesem Rechner.",
  },
});
