package repositories_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// store is everything a test needs of one database.
type store struct {
	*db.DB
	sessions     *repositories.Sessions
	messages     *repositories.Messages
	summaries    *repositories.Summaries
	runs         *repositories.Runs
	events       *repositories.Events
	modelCalls   *repositories.ModelCalls
	calibrations *repositories.Calibrations
	blobs        *repositories.Blobs
	deliveries   *repositories.Deliveries
}

func open(d *db.DB) *store {
	return &store{
		DB:           d,
		sessions:     repositories.NewSessions(d.Gorm),
		messages:     repositories.NewMessages(d.Gorm),
		summaries:    repositories.NewSummaries(d.Gorm),
		runs:         repositories.NewRuns(d.Gorm),
		events:       repositories.NewEvents(d.Gorm),
		modelCalls:   repositories.NewModelCalls(d.Gorm),
		calibrations: repositories.NewCalibrations(d.Gorm),
		blobs:        repositories.NewBlobs(d.Gorm),
		deliveries:   repositories.NewDeliveries(d.Gorm),
	}
}

// each runs test on both databases, beside the other tests.
func each(t *testing.T, test func(t *testing.T, s *store)) {
	t.Helper()
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) { test(t, open(d)) })
}

// ann owns what the tests make; bob must see none of it; ann's carol has her own.
func ann() core.Tenant   { return core.Tenant{Owner: "ann"} }
func bob() core.Tenant   { return core.Tenant{Owner: "bob"} }
func carol() core.Tenant { return core.Tenant{Owner: "ann", User: "carol"} }

const worker = "worker-1"

func (s *store) session(t *testing.T) core.Session {
	t.Helper()
	return must.Get(s.sessions.Create(t.Context(), core.Session{Owner: "ann", Agent: "assistant", Source: core.SourceAPI}))(t)
}

// archive puts a session away.
func (s *store) archive(ctx context.Context, tenant core.Tenant, id core.SessionID) error {
	_, _, err := s.sessions.Update(ctx, tenant, id, core.SessionPatch{Archived: new(true)})
	return err
}

func ask(session core.SessionID, content string) core.AcceptRun {
	return core.AcceptRun{
		SessionID: session, Agent: "assistant", Worker: worker,
		Input: core.RunInput{Content: content, Source: core.SourceAPI, TokenCount: 7},
	}
}

func (s *store) accept(t *testing.T, in core.AcceptRun) core.Accepted {
	t.Helper()
	return must.Get(s.runs.Accept(t.Context(), ann(), in))(t)
}

func answer(content string) core.Message {
	return core.Message{
		ID: core.NewID[core.MessageID](), Role: core.RoleAssistant, Content: content,
		Status: core.MessageComplete, Source: core.SourceAPI, TokenCount: 5,
	}
}

func (s *store) write(t *testing.T, w core.RunWrite) core.Written {
	t.Helper()
	return must.Get(s.runs.Write(t.Context(), w))(t)
}

// finish ends the run with an answer.
func (s *store) finish(t *testing.T, run core.Run, content string) core.Written {
	t.Helper()
	m := answer(content)
	return s.write(t, core.RunWrite{
		RunID: run.ID, SessionID: run.SessionID, Attempt: run.Attempt, Messages: []core.Message{m},
		End: &core.RunEnd{Status: core.RunSucceeded, AnswerID: m.ID},
	})
}

// turns puts n questions with their answers into the session.
func (s *store) turns(t *testing.T, session core.SessionID, n int) {
	t.Helper()
	for i := range n {
		s.finish(t, s.accept(t, ask(session, fmt.Sprintf("question %d", i))).Run, fmt.Sprintf("answer %d", i))
	}
}

// keep keeps an answer for a request that may come again.
func (s *store) keep(t *testing.T, key, target, body string) {
	t.Helper()
	in := keyed("ann", key)
	in.Target = target
	s.take(t, in)
	must.Do(t, repositories.NewIdempotencyKeys(s.Gorm).Finish(t.Context(), in, core.KeyedAnswer{RequestHash: "h", Status: 200, Body: []byte(body), Kept: true}))
}

func (s *store) log(t *testing.T, session core.SessionID) []core.Message {
	t.Helper()
	return must.Get(s.messages.GetMessagesAfter(t.Context(), ann(), session, ""))(t)
}

func (s *store) allEvents(t *testing.T, session core.SessionID) []core.Event {
	t.Helper()
	return must.Get(s.events.After(t.Context(), session, 0, 100_000))(t)
}

// exec runs SQL that no repository would.
func (s *store) exec(t *testing.T, stmt string, args ...any) {
	t.Helper()
	if err := s.Gorm.WithContext(t.Context()).Exec(stmt, args...).Error; err != nil {
		t.Fatalf("%s: %v", stmt, err)
	}
}

func (s *store) count(t *testing.T, query string, args ...any) int {
	t.Helper()
	var n int
	if err := s.Gorm.WithContext(t.Context()).Raw(query, args...).Scan(&n).Error; err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// expire puts the ends of all leases into the past.
func (s *store) expire(t *testing.T) {
	t.Helper()
	past := "'2000-01-01 00:00:00+00:00'"
	s.exec(t, "UPDATE runs SET lease_until = "+past+" WHERE status = 'running'")
}

// takeOver takes over what nobody works on, however many deaths it has.
func (s *store) takeOver(ctx context.Context, worker string, lapsed bool, limit int) (all []core.Run, err error) {
	due, err := s.runs.Due(ctx, worker, lapsed)
	for _, deaths := range slices.Sorted(maps.Keys(due)) {
		got, err := s.runs.TakeOver(ctx, core.TakeOver{Worker: worker, Lapsed: lapsed, Deaths: deaths, Limit: limit - len(all)})
		if all = append(all, got...); err != nil {
			return all, err
		}
	}
	return all, err
}

// all returns the items of a list, read page by page.
func all[T any](t testing.TB, list func(cursor string) (core.Page[T], error)) (items []T) {
	t.Helper()
	must.Do(t, core.EachPage(list, func(item T) error { items = append(items, item); return nil }))
	return items
}

func types(events []core.Event) []core.EventType {
	list := make([]core.EventType, 0, len(events))
	for _, e := range events {
		list = append(list, e.Type)
	}
	return list
}

// gapless checks that the numbers are 1, 2, 3 …
func gapless[T any](t *testing.T, what string, list []T, number func(T) int64) {
	t.Helper()
	for i, v := range list {
		if got, want := number(v), int64(i+1); got != want {
			t.Fatalf("%s %d of %d: got number %d, want %d", what, i, len(list), got, want)
		}
	}
}

func wantError(t *testing.T, what string, got, want error) {
	t.Helper()
	compare.Error(t, what, want, got)
}

func wantNotFound(t *testing.T, what string, got error) {
	t.Helper()
	wantError(t, what, got, core.ErrNotFound)
}

// dataText returns the data of an event as its readers get them.
func dataText(t *testing.T, e core.Event) string {
	t.Helper()
	text := must.Get(json.Marshal(e.Data))(t)
	return string(text)
}

func decode[T any](t *testing.T, e core.Event) T {
	t.Helper()
	v, ok := e.Data.(T)
	must.True(t, ok, "the data of %s are %T", e.Type, e.Data)
	return v
}
