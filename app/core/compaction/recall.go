package compaction

import (
	"context"
	"slices"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// Recaller finds messages of a session for a question, the best first, without those that the
// prompt shows, by their seq. Each has what a prompt quotes of it as its Content, in a single line.
type Recaller interface {
	Recall(ctx context.Context, session core.Session, question string, shown map[int64]bool) ([]core.Message, error)
}

// Recalled is what the log has for a run's message. It is never changed.
type Recalled struct {
	passages []contextwindow.Passage
	lines    map[core.MessageID]string
	failure  string // why nothing was found; empty = the search went well
}

// recallTime bounds the search for a prompt: its user waits.
const recallTime = 2 * time.Second

// withRecalled returns the turn with the passages that its run's message asks for, if the
// policy wants them and the prompt does not show the whole conversation. A search that fails
// is no error: the prompt is as without it, and reports say why.
func (k *Compactor) withRecalled(ctx context.Context, t Turn) Turn {
	if t.Recalled != nil || k.Stores.Recall == nil || t.Profile.Policy.Recall != contextwindow.RecallAuto || len(t.Run) == 0 {
		return t
	}
	if t.Session.Temporary {
		t.Recalled = &Recalled{failure: "nothing is recalled: messages of temporary sessions are not indexed"}
		return t
	}
	if !k.mayHide(t) {
		t.Recalled = &Recalled{} // what is added later in a run would change the prompt before it
		return t
	}
	searching, cancel := context.WithTimeout(ctx, recallTime)
	defer cancel()
	var found []core.Message
	question, err := k.messageText(searching, t, t.Run[0])
	if err == nil {
		found, err = k.Stores.Recall.Recall(searching, t.Session, question, t.ShownSeqs())
	}
	if err != nil {
		if ctx.Err() == nil {
			k.Logger.WarnContext(ctx, "recall failed", "session_id", t.Session.ID, "run_id", t.RunID, "err", err)
		}
		t.Recalled = &Recalled{failure: "nothing is recalled: the conversation could not be searched"}
		return t
	}
	t.Recalled = k.quotePassages(t, found)
	if k.modelOf(t).Prefix.Binds() {
		k.findPassages(searching, t, found)
	}
	return t
}

// shownWhole is the size, in tokens, up to which prompts show a message of the tail word for
// word unless its state says otherwise.
const shownWhole = 500

// ShownSeqs returns the messages that the prompts of the turn's run show word for word, by seq:
// those after the summary that are neither left out, shortened nor replaced by notes, and
// those of the run. Tool results count as not shown: prompts have excerpts of them.
func (t Turn) ShownSeqs() map[int64]bool {
	shown := map[int64]bool{}
	for _, m := range t.Run {
		shown[m.Seq] = true // the question, too, whatever its size
	}
	state, err := contextwindow.DecodeState(t.Session.PromptState)
	if err != nil {
		return shown
	}
	isHidden := func(m core.Message) bool {
		_, isShortened := state.Shortened[m.ID]
		return isShortened || m.Role == core.RoleTool || m.TokenCount > shownWhole ||
			slices.ContainsFunc(state.LeftOut, func(r contextwindow.SeqRange) bool { return r.From <= m.Seq && m.Seq <= r.Through }) ||
			slices.ContainsFunc(state.Loops, func(r contextwindow.LoopRange) bool { return r.From <= m.Seq && m.Seq <= r.Through })
	}
	for _, m := range t.History {
		if !isHidden(m) {
			shown[m.Seq] = true
		}
	}
	return shown
}

// messageText returns the text of a message of the turn, which may not be loaded.
func (k *Compactor) messageText(ctx context.Context, t Turn, m core.Message) (string, error) {
	if m.Unloaded == 0 {
		return m.Content, nil
	}
	loaded, err := k.Stores.Messages.GetMessages(ctx, scopeOf(t), t.Session.ID, []core.MessageID{m.ID})
	if err != nil || len(loaded) == 0 {
		return "", err
	}
	return loaded[0].Content, nil
}

// mayHide reports whether a prompt of the turn may lack messages of the conversation.
func (k *Compactor) mayHide(t Turn) bool {
	state, err := contextwindow.DecodeState(t.Session.PromptState)
	if err != nil || t.Session.SummaryVersion > 0 || len(state.LeftOut)+len(state.Loops) > 0 {
		return true
	}
	size := 0
	for _, m := range slices.Concat(t.History, t.Run) {
		size += m.TokenCount
	}
	window, _ := k.turnWindow(t)
	budget := t.Profile.Policy.Budget(contextwindow.Limits{Window: window, MaxOutput: t.Profile.maxOutput()}, 0)
	return k.Calibrator.Estimate(t.Profile.Model.Info().Name, t.Session.ID).Apply(size) > budget.Landing
}

// quotePassages returns the messages as the prompt quotes them.
func (k *Compactor) quotePassages(t Turn, found []core.Message) *Recalled {
	r := &Recalled{lines: map[core.MessageID]string{}}
	for _, m := range found {
		line := contextwindow.PassageLine(m, m.Content)
		r.lines[m.ID] = line
		r.passages = append(r.passages, contextwindow.Passage{
			ID: m.ID, Seq: m.Seq, Day: t.dayOf(m), Tokens: k.Counter.Text(line),
		})
	}
	return r
}

// dayOf returns the day on which the message was written, as prompts show it.
func (t Turn) dayOf(m core.Message) string {
	zone, err := time.LoadLocation(t.Session.Timezone)
	if err != nil {
		zone = time.UTC
	}
	return m.CreatedAt.In(zone).Format("2 January 2006")
}
