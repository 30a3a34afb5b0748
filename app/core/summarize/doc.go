// Package summarize turns the oldest part of a conversation into a running summary.
//
// A Strategy writes a summary: LLM asks a language model, Hybrid appends to the
// model's text a ledger that code extracted (the users' newest messages, files,
// commands, errors, URLs), and Extract needs no model at all: NewExtractive for
// conversations, NewSteps for the tool loop of a run. A new strategy is one type with one method.
//
// A ledger is evidence, not authority. Messages and errors are quoted with their source. Of a
// tool's result it has the exit code, the names of files, and the errors of a call that failed.
// What is exact stands in the ledger; nothing is guessed from the words of a summary.
//
// A Summarizer guards a strategy. Whatever the strategy does, the result is
// within its limit and strictly smaller than what it replaces, or there is an
// error and nothing may be stored:
//
//	strategy ── accepted ─────────────────────────────▶ Result
//	   ├─ refused, failed, time limit ▶ without model ▶ Result with a Note that says so
//	   └─ ctx done ───────────────────────────────────▶ error
//
// Inside LLM every answer passes the same gate. The answer ended normally, calls no tool,
// holds no markup that no message has, does not continue the dialog, and repeats neither
// the transcript nor itself. It is long enough, and smaller than its material. Besides the words of its
// request it has words of different parts of the messages, in their order there, and keeps some of the
// summary that it extends. The gate checks form and words, not meaning.
// A refused answer is requested once more with the reason; an answer over its limit once
// more, shorter, and is then cut at a sentence. A summary is one call of the model:
// LLM.Room returns how much one call can summarize, and callers pass no more. A single
// message that is larger is cut in its middle, and Result.Shortened counts it.
//
// The conversation reaches the model as text between <transcript> and
// </transcript>, introduced as data; fences inside the data are escaped.
//
// The prompts are in prompts/*.md, one file a preset. They are here and not with
// the agents' prompts, because core may not import agents.
//
// The package keeps no state between summaries and starts no goroutine: all types
// are safe for concurrent use. A crash loses only the summary that is being written.
// All work is linear in the size of its input.
package summarize
