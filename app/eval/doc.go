// Package eval replays recorded conversations through Bobbin's context management
// and measures what came of it: how large the prompts were, what summaries cost,
// how much a provider's cache could have read, and which facts are still within
// reach.
//
//	messages ─▶ Split ─▶ Conversation ─▶ Replay ──▶ Result ─▶ Report ─▶ table, JSON
//	                          │            │ ▲
//	             Player (the recorded      ▼ │ Bobbin: the whole program over a
//	             answers as a model) ◀── prompts   database of its own
//
// Nothing here manages a context: Replay says the user's messages to a Bobbin, one
// after the other, and Player is the model that answers them, with what the file
// says was answered. Everything between is what a server does. Samples are conversations
// to try.
//
// The same conversation, policy and settings give the same Result. That needs one
// ruler for all ids (Steady): they are made at random, and a prompt may hold some.
package eval
