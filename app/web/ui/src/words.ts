// All texts of the page. A text that is missing here does not compile.

const number = new Intl.NumberFormat("en-US");

export function count(n: number): string {
  return number.format(n);
}

export function plural(n: number, one: string, many = one + "s"): string {
  return `${number.format(n)} ${n === 1 ? one : many}`;
}

export const words = {
  product: "Bobbin",
  newConversation: "New conversation",
  conversations: "Conversations",
  allConversations: "All conversations",
  noConversations: "Your conversations will be listed here. They are kept until you delete them.",
  thread: "Conversation",
  context: "Context",
  contextPanel: "Context panel",
  skip: "To the message field",
  generating: "Generating",
  answerComplete: "Answer complete",
  summarizing: "Summarizing",
  connectionLost: "Connection lost",
  brokeOff: "The answer broke off",
  stopped: "You stopped it",
  question: (tool: string) => `Question: may ${tool} start?`,
} as const;
