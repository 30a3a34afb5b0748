// Package records reads everything that is stored of a session, for tests that break
// things, and checks that it is whole: numbers without gaps, each question once with
// its answer, no tool call without a result, and summaries that go on where the one
// before ends.
package records

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/apptest"
)

// everything is more events than a session has.
const everything = 1_000_000

// Record is everything that is stored of one session of the local owner.
type Record struct {
	Session   core.Session
	Messages  []core.Message // by seq
	Runs      []core.Run     // by queue_seq
	Events    []core.Event   // by number
	Summaries []core.Summary // by version, without those that are prepared
}

// Load reads the session.
func Load(ctx context.Context, g *gorm.DB, id core.SessionID) (r Record, err error) {
	tenant := core.Tenant{Owner: core.LocalOwner}
	if r.Session, r.Summaries, err = Summaries(ctx, g, id); err != nil {
		return r, err
	}
	if r.Messages, err = repositories.NewMessages(g).GetMessagesAfter(ctx, tenant, id, ""); err != nil {
		return r, err
	}
	if r.Events, err = repositories.NewEvents(g).After(ctx, id, 0, everything); err != nil {
		return r, err
	}
	r.Runs, err = Pages(func(q core.PageQuery) (core.Page[core.Run], error) {
		return repositories.NewRuns(g).List(ctx, tenant, id, q)
	})
	slices.SortFunc(r.Runs, func(a, b core.Run) int { return cmp.Compare(a.QueueSeq, b.QueueSeq) })
	return r, err
}

// Summaries reads the session and its summaries that were in use, by version. One that
// is prepared is in no prompt yet.
func Summaries(ctx context.Context, g *gorm.DB, id core.SessionID) (core.Session, []core.Summary, error) {
	tenant := core.Tenant{Owner: core.LocalOwner}
	session, err := repositories.NewSessions(g).Get(ctx, tenant, id)
	if err != nil {
		return session, nil, err
	}
	versions, err := Pages(func(q core.PageQuery) (core.Page[core.Summary], error) {
		return repositories.NewSummaries(g).List(ctx, tenant, id, q)
	})
	slices.Reverse(versions)
	versions = slices.DeleteFunc(versions, func(s core.Summary) bool { return s.State == core.SummaryPrepared })
	return session, versions, err
}

// Pages reads all pages of a list.
func Pages[T any](list func(core.PageQuery) (core.Page[T], error)) (all []T, err error) {
	q := core.PageQuery{Limit: 100}
	for {
		page, err := list(q)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.NextCursor == nil {
			return all, nil
		}
		q.Cursor = *page.NextCursor
	}
}

// Decoded returns the data of an event; of another type they are empty.
func Decoded[T any](e core.Event) T {
	data, _ := e.Data.(T) // the checks see that it is empty
	return data
}

// Compose returns a message: its mark, and words. One in four wants a tool.
func Compose(mark string, r *rand.Rand) string {
	words := []string{
		"river", "stone", "lantern", "copper", "winter", "paper", "orchard", "signal", "harbor", "velvet", "number",
		"question", "window", "ladder", "summer", "bridge", "engine", "garden", "letter", "mountain", "Übergröße", "日本語", "naïve",
	}
	text := []string{mark}
	if r.IntN(4) == 0 {
		text = append(text, "tool")
	}
	length := 20 + r.IntN(400)
	if r.IntN(40) == 0 {
		length = 1500
	}
	for range length {
		text = append(text, words[r.IntN(len(words))])
	}
	return strings.Join(text, " ")
}

// Approvals checks that each question was asked once and closed once, and that the tool
// call has the result that goes with that: none that was not approved has one of the tool.
func (c *Check) Approvals() {
	asked, closed := map[core.ApprovalID]int{}, map[core.ApprovalID]core.Approval{}
	for _, e := range c.Events {
		a := Decoded[core.ApprovalData](e).Approval
		switch e.Type {
		case core.EventApprovalRequested:
			asked[a.ID]++
		case core.EventApprovalDecided:
			if _, twice := closed[a.ID]; twice || asked[a.ID] != 1 {
				c.Errorf("question %s was asked %d times, and closed again (%v)", a.ID, asked[a.ID], twice)
			}
			closed[a.ID] = a
		}
	}
	results := map[core.RunID]map[string]string{}
	for _, m := range c.Messages {
		if m.Role == core.RoleTool {
			if results[m.RunID] == nil {
				results[m.RunID] = map[string]string{}
			}
			results[m.RunID][m.ToolCallID] = m.Content
		}
	}
	for id := range asked {
		a, done := closed[id]
		result, there := results[a.RunID][a.ToolCallID]
		refused := strings.HasPrefix(result, "not approved")
		if !done || !there || refused == (a.Status == core.ApprovalApproved) {
			c.Errorf("question %s is %q, and the result of its call is %q (%v)", id, a.Status, result, there)
		}
		c.Found.Asked++
	}
}

// Send sends a message by one of three surfaces and returns its run; errorf is told of a wrong answer.
func Send(ctx context.Context, c *client.Client, m core.SendMessage, surface int, errorf func(format string, args ...any)) (run core.RunID, err error) {
	switch surface {
	case 0:
		run, err := apptest.SendAsync(ctx, c, m)
		return run.ID, err
	case 1:
		a, err := apptest.SendAndWait(ctx, c, m)
		if err == nil && a.Run.Status == core.RunSucceeded && (a.Message == nil || !IsAnswer(a.Message.Content, m.Content)) {
			errorf("message %s got the wrong answer: %+v", m.ClientMessageID, a.Message)
		}
		return a.Run.ID, err
	default:
		for e, err := range apptest.Send(ctx, c, m) {
			if err != nil {
				return run, err
			}
			run = e.RunID
		}
		return run, nil
	}
}

// Quantiles returns the median and the longest.
func Quantiles(times []time.Duration) (p50, most time.Duration) {
	if len(times) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2].Round(time.Millisecond), sorted[len(sorted)-1].Round(time.Millisecond)
}
