// Package compaction keeps the prompts of a session within the model's window: it
// carries out the decisions of contextwindow.Plan.
//
// Compactor.Fit plans, makes a summary if the plan asks for one, commits it with a
// compare-and-set on the session row, and plans again, until the decision is a prompt
// that fits. Compactor.Request builds the request of that decision. An Inspector serves
// people with the same plan: it reports, says where a message is, plans for other
// conditions, and edits and restores summaries.
//
//	Turn ─▶ Plan ─▶ fits ───────────────────────────────▶ Decision ─▶ Request
//	          ▲  └▶ Order ─▶ summarize (no transaction) ─▶ ApplyContext
//	          └──────────── lost the compare-and-set: reload ◀┘
//
// After a crash at any point the session holds either the old or the new state:
// the summary, the cursor and the prompt state are written in one transaction.
// Messages that are appended while a summary is in progress do not make it stale.
//
// Outside of runs, Compactor.SummarizeDue makes the summaries that the policy's timing wants: Enqueue
// queues a session, and the workers of Run advance it. A prepared summary changes no
// prompt until the plan activates it:
//
//	Prepare ─▶ prepared ─▶ Activate ─▶ active ─▶ dropped
//	              └─ another summary, or a change of what it covers ─▶ dropped
//
// An order is at most one call of the summary model; the next plan orders the next part. Versions form
// a chain: each covers what the ones before it cover, and more. A prompt has the oldest with which it is
// below the triggers of its model, so what a smaller model needed does not take a larger one's messages.
//
// A Compactor is safe for concurrent use. A lease on the session row ensures that only one
// summary of a session is made at a time across all processes; notes on a tool loop are
// made by their run alone. Run owns the goroutines: its workers, which get the grace period
// when it ends.
package compaction
