import { pick } from "../language";

/** What the list needs of the operation's texts before the rest is loaded. */
export const operationTitle = pick({ en: "Operation", de: "Betrieb" });
export const skipToOperation = pick({ en: "To the operation", de: "Zum Betrieb" });
