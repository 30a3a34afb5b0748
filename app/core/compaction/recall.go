package compaction

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// Recalled is what the log has for a run's message. It is never changed.
type Recalled struct {
	passages []contextwindow.Passage
	failure  string // why nothing was found; empty = the search went well
	of       recallKey
}

// recallKey says of which prompts a search is: what is added later in a run would change the prompt
// before it, but another model or window has other prompts anyway.
type recallKey struct {
	model  string
	window int
}

// recallTime bounds the search for a prompt: its user waits.
const recallTime = 2 * time.Second

// withRecalled returns the turn with the passages that its run's message asks for among what the
// planned prompt lacks, if the policy wants them, and the plan with these. They take room from
// nothing, so all else of the plan stays as it is. A search that fails is no error: the prompt is as
// without it, and reports say why.
func (k *Compactor) withRecalled(ctx context.Context, t Turn, p plan) (Turn, plan) {
	key := recallKey{t.Profile.Model.Info().Name, p.d.Budget.Window}
	isDone := t.Recalled != nil && t.Recalled.of == key
	if isDone || k.Stores.Search == nil || t.Profile.Policy.Recall != contextwindow.RecallAuto || len(t.Run) == 0 || p.d.Floor != nil {
		return t, p
	}
	t.Recalled = k.recall(ctx, t, p.d)
	t.Recalled.of = key
	return t, p.withRecalled(t.Recalled)
}

// recall searches what the prompt of the decision lacks for what the run's message asks.
func (k *Compactor) recall(ctx context.Context, t Turn, d contextwindow.Decision) *Recalled {
	if t.Session.Temporary {
		return &Recalled{failure: "nothing is recalled: messages of temporary sessions are not indexed"}
	}
	if t.Session.SummaryVersion == 0 && !d.Hides() {
		return &Recalled{}
	}
	searching, cancel := context.WithTimeout(ctx, recallTime)
	defer cancel()
	var found []core.Message
	refused, err := k.Stores.Messages.Refused(searching, scopeOf(t), t.Session.ID)
	question := t.Run[:1]
	if err == nil && question[0].Unloaded > 0 {
		question, err = k.loadTexts(searching, t, question)
	}
	if err == nil {
		shown := d.ShownSeqs()
		shown[t.Run[0].Seq] = true // the question, whatever its size
		for _, m := range refused {
			shown[m.Seq] = shown[m.Seq] || m.Role == core.RoleUser && m.FinishReason == core.FinishContentFilter
		}
		found, err = Finder{k.Stores.Search}.Recall(searching, t.Session, question[0].Content, shown)
	}
	if err != nil {
		if ctx.Err() == nil {
			k.Logger.WarnContext(ctx, "recall failed", "session_id", t.Session.ID, "run_id", t.RunID, "err", err)
		}
		return &Recalled{failure: "nothing is recalled: the conversation could not be searched"}
	}
	recalled := &Recalled{}
	ids := make([]core.MessageID, len(found))
	for i, m := range found {
		ids[i] = m.ID
		line := contextwindow.PassageLine(m, m.Content)
		recalled.passages = append(recalled.passages, contextwindow.Passage{
			ID: m.ID, Seq: m.Seq, Day: t.dayOf(m), Line: line, Tokens: k.Counter.Text(line),
		})
	}
	if k.modelOf(t).Prefix.Binds() {
		err := k.eachMessage(searching, t, ids, func(m core.Message) {
			i := slices.Index(ids, m.ID)
			recalled.passages[i].Part, _ = core.FindPassage(m, found[i].Content) // one that is not found is not quoted again
		})
		if err != nil && searching.Err() == nil {
			k.Logger.WarnContext(searching, "recalled passages not found again", "session_id", t.Session.ID, "run_id", t.RunID, "err", err)
		}
	}
	return recalled
}

// dayOf returns the day on which the message was written, as prompts show it.
func (t Turn) dayOf(m core.Message) string {
	zone, err := time.LoadLocation(t.Session.Timezone)
	if err != nil {
		zone = time.UTC
	}
	return m.CreatedAt.In(zone).Format("2 January 2006")
}

// quotedMessages is how many messages are in memory at a time while passages of them are quoted.
const quotedMessages = 16

// loadQuotes returns the texts of the passages that the prompt of the decision quotes again,
// and loads those that the turn does not have yet. It omits passages of messages that no longer
// have them.
func (k *Compactor) loadQuotes(ctx context.Context, t Turn, d contextwindow.Decision) (contextwindow.Quotes, error) {
	missing := map[core.MessageID][]core.RecalledPassage{}
	for _, s := range d.History {
		if s.Quotes == nil {
			continue
		}
		for _, p := range s.Quotes.Passages {
			if _, known := t.Quotes[p]; !known {
				missing[p.MessageID] = append(missing[p.MessageID], p)
			}
		}
	}
	if len(missing) == 0 {
		return t.Quotes, nil
	}
	quotes := contextwindow.Quotes{}
	maps.Copy(quotes, t.Quotes)
	err := k.eachMessage(ctx, t, slices.Sorted(maps.Keys(missing)), func(m core.Message) {
		for _, p := range missing[m.ID] {
			text, ok := p.Quote(m)
			if !ok {
				continue
			}
			m.Named = m.Author != ""
			quotes[p] = contextwindow.Passage{Seq: m.Seq, Day: t.dayOf(m), Line: contextwindow.PassageLine(m, text)}
		}
	})
	return quotes, err
}

// eachMessage calls use with each of the messages that still exist.
func (k *Compactor) eachMessage(ctx context.Context, t Turn, ids []core.MessageID, use func(core.Message)) error {
	for some := range slices.Chunk(ids, quotedMessages) {
		found, err := k.Stores.Messages.GetMessages(ctx, scopeOf(t), t.Session.ID, some)
		if err != nil {
			return fmt.Errorf("load the messages of passages: %w", err)
		}
		for _, m := range found {
			use(m)
		}
	}
	return nil
}
