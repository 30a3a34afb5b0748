// The texts of the widget. Its visitors know nothing of models, prompts and tools.
import { pick } from "../language";
import { words as page } from "../words";

const own = pick({
  en: {
    subtitle: "An assistant answers at once",
    footer: "Answers by Bobbin. They can be wrong.",
    waits: "An answer has to be allowed by somebody first.",
    ended: "Your sign-in on this page has ended.",
    alone: "This page is shown in a frame of another one: see the widget in Bobbin’s documentation.",
  },
  de: {
    subtitle: "Ein Assistent antwortet sofort",
    footer: "Antworten von Bobbin. Sie können falsch sein.",
    waits: "Eine Antwort muss erst von jemandem erlaubt werden.",
    ended: "Die Anmeldung auf dieser Seite ist abgelaufen.",
    alone: "Diese Seite erscheint im Rahmen einer anderen: siehe das Widget in Bobbins Dokumentation.",
  },
});

export const words = { ...page, ...own };
