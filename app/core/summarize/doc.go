// Package summarize turns the oldest part of a conversation into a running
// summary (CONTEXT § 6).
//
// A Strategy makes a summary: LLM asks a language model, Hybrid adds to the
// model's words a ledger that code extracted (files, commands, errors, URLs),
// Extractive needs no model at all, and neither does Steps, which is for the tool loop
// of a run. A new strategy is one type with one method.
//
// A Summarizer guards a strategy. Whatever the strategy does, what comes out is
// within its limit and strictly smaller than what it replaces, or there is an
// error and nothing is to be stored:
//
//	strategy ── accepted ─────────────────────────────▶ Result
//	   ├─ refused, failed, time limit ▶ without model ▶ Result with a Note that says so
//	   └─ ctx done ───────────────────────────────────▶ error
//
// Inside LLM every answer passes the same gate: not empty, ended normally, no
// tool call, no error text, no small talk, smaller than its material. A refused
// answer is asked for once more with the reason; one over its limit once more,
// shorter, and then cut at a sentence. Material that does not fit the model's own
// window is folded in chunks: summary k comes from summary k−1 and chunk k. The
// number of calls is bounded, and nothing here calls itself.
//
// The conversation reaches the model as text between <transcript> and
// </transcript>, introduced as data; fences inside the data are made harmless.
//
// The prompts are in prompts/*.md, a file a preset. They stand here and not with
// the agents' prompts, because core may not import agents.
//
// Nothing is kept between two summaries and no goroutine is started: all types
// are safe for concurrent use. A crash loses the summary in the making and nothing
// else. All work is linear in the size of its input, but for the sorting of a
// summary's sections.
package summarize
