// Package compaction keeps the prompts of a session within the model's window: it
// carries out what contextwindow.Plan decides.
//
// Keeper.Fit plans, has a summary made where the plan asks for one, commits it
// with a compare-and-set on the session row, and plans again, until the decision
// is a prompt that fits. Keeper.Request turns that decision into what is sent.
// Report, Prompt and Summarize answer the same questions for people; a Control says
// where a message is, plans for other conditions, and edits and restores summaries.
//
//	Turn ─▶ Plan ─▶ fits ───────────────────────────────▶ Decision ─▶ Request
//	          ▲  └▶ Order ─▶ summarize (no transaction) ─▶ ApplyContext
//	          └──────────── lost the compare-and-set: reload ◀┘
//
// After a crash at any point the session holds either the old or the new state:
// the summary, the cursor and the prompt state are written in one transaction.
// Messages that are appended while a summary is being made do not make it stale.
//
// Beside runs, Keeper.Advance makes what the policy's timing wants: Soon queues a
// session, Run's workers look at it. A summary that is prepared changes no prompt until
// the plan activates it:
//
//	Prepare ─▶ prepared ─▶ Activate ─▶ active ─▶ dropped
//	              └─ another summary, or a change of what it covers ─▶ dropped
//
// A Keeper is safe for concurrent use. At most one summary of a session is made at a
// time: in one process by its flights, across processes by a lease on the session row;
// notes on the tool loop are the business of the run alone. Run owns the goroutines: its
// workers, which have the grace period when it ends.
package compaction
