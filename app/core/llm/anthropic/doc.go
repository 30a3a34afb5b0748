// Package anthropic speaks to Claude over Anthropic's Messages API, through providerhttp as the other
// adapters do. No goroutine is started; a loop over Stream that ends has ended its request.
//
// # What a request becomes
//
//   - The system blocks stay blocks. Messages of one role that follow each other
//     become one; the results of a turn's tool calls come first in it, in the order
//     of the calls.
//   - The arguments of a call are sent as the model wrote them, byte for byte. Text
//     that is no JSON object, which the API refuses, is wrapped into one.
//   - Without a tool list the API refuses tool turns: they are sent as text then.
//   - At most four cache breakpoints: the last tool, the system prompt, the block
//     after it (the summary, if there is one), and the end of a conversation of
//     more than one message. What precedes a message that the next prompt does not
//     have (llm.Message.Passing) takes the place of the last tool. A prompt that grows at its end is read from the cache
//     up to where it grew; a summary's request, which nobody sends again, is not
//     written to it.
//
// # Thinking
//
// It is off unless Options.Thinking is set. Up to Claude 4.5 that is the budget;
// it is kept 1,024 tokens below the output limit, and where that leaves less than
// the 1,024 that the API wants, the call is made without. From Claude 4.6 on the
// model decides itself how much it thinks, and any number turns it on. A request
// with a temperature is made without thinking: they exclude each other.
//
// Blocks of thinking come as llm.Delta.Part with their signature, and go back
// unchanged, in their place, with the message's tool calls; those of other
// messages are not needed and not sent. A signature holds for the model that made
// it: what another model signed is dropped. Where the last answer is tool calls
// that came without thinking of this model, a model with a budget is asked without
// thinking, as the API wants it. Thoughts that the API refuses, such as those of a
// name that stands for another model since, are left out in a second request.
//
// # Compactions
//
// A request with Compact goes out with the beta compact-2026-09-04, the thinking and the tools of
// other requests, and without stop sequences, a format and a forced tool. Its answer is one block
// with a text and a signature. Opaque members beside the signature are kept with it, as JSON in
// core.Part.Signature.
//
// A prompt that begins with a compaction has the block in an assistant's message of its own, as it
// came, with the same beta. Thoughts of the messages behind it stay valid where these follow the
// summarized ones directly, begin with another role, and system and tools are unchanged. A block that the API
// does not take back is KindCompactionRefused; the request is not repeated.
//
// The usage is the sum of all passes that the API bills (usage.iterations).
//
// # Changed tools
//
// A system message among the others that changes the tools has blocks tool_removal, by name, and
// tool_addition, with the definition, before its text. They need the betas
// mid-conversation-tool-changes-2026-07-01 and inline-tools-2026-09-15; the tools of the request stay as
// they are. A refusal that names a block or a beta is KindToolChangesRefused; the request is not repeated.
//
// # Parameters
//
// Info.Lacks has those that the model does not take: a seed, a reasoning effort (its levels
// are not those of the OpenAI dialect) and JSON without a schema, which the API does not
// have; a temperature over 1, temperature and top_p beside each other, and both with thinking or from Claude 4.7 on;
// schemas before Claude 4.5. A schema is always followed strictly.
//
// # Known limits
//
// Images and PDFs go before the text of their message, as Anthropic advises.
package anthropic
