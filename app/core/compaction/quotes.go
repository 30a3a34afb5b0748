package compaction

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

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
	quotes := maps.Clone(t.Quotes)
	if quotes == nil {
		quotes = contextwindow.Quotes{}
	}
	err := k.eachMessage(ctx, t, slices.Sorted(maps.Keys(missing)), func(m core.Message) {
		for _, p := range missing[m.ID] {
			text, ok := p.Quote(m)
			if !ok {
				continue
			}
			m.Named = m.Author != ""
			quotes[p] = contextwindow.Quote{Seq: m.Seq, Day: t.dayOf(m), Line: contextwindow.PassageLine(m, text)}
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
