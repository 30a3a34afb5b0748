// Package responses calls models over OpenAI's Responses API.
//
// A Model builds the body, sends it through providerhttp, reads the stream and yields each
// delta. It starts no goroutine; a loop over Stream that ends has ended its request.
//
// # What a request becomes
//
//   - Nothing is stored at the provider (store is false): every request has the whole
//     conversation, as items in their order. The system blocks are the instructions, joined by
//     an empty line.
//   - An item depends on its message alone, so that a conversation that grows at its end keeps
//     its prefix, byte for byte. Messages are never joined.
//   - A tool says whether it is strict: where it does not, the API makes optional arguments
//     required ones.
//   - Info.Lacks has the parameters that the API does not have (stop, seed) and those that the
//     model does not take. The output limit is 16 tokens at least.
//
// # Reasoning
//
// Items of reasoning come encrypted and go back unchanged, in their place between texts and
// tool calls. Each is one core.Part for each text of its summary, and at least one; all have
// the item's id as Name, and the last has the encrypted content as Signature. Items go back
// only to the model that made them. Those without encrypted content cannot go back: the API
// has not stored them. Reasoning that the API cannot decrypt, such as that of another account, is left out
// in a second request.
//
// Summaries of the reasoning are requested of reasoning models, for answers that a user waits for.
// The API refuses that to organizations that are not verified: the request is repeated without, and
// so are all later ones.
//
// The phase of a message (commentary, final_answer) is an empty core.Part of type text at the end of
// the message's text, with the phase as Name. It goes back to the same model.
//
// The usage of a call does not have the reasoning that went back
// (llm.Info.ReasoningUncounted).
//
// # Added tools
//
// The tools that a system message adds are an item additional_tools before its text, which is a
// developer message. No item removes tools. A refusal that names the item is KindToolChangesRefused;
// the request is not repeated.
//
// # Known limits
//
// The ids of messages and calls are not kept.
package responses
