package chat_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/tests/must"
)

func TestCreateSession(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, answer)
		got, err := h.CreateSession(t.Context(), ann, core.Session{
			ID: "mine", Owner: "bob", Title: "a\x00b", Timezone: "Europe/Berlin", UserID: "u1", MessageCount: 7,
			Instructions: "be \xff kind", Metadata: json.RawMessage(`{"a":1}`), Model: "demo",
		})
		must.Do(t, err)
		if got.ID == "mine" || got.Owner != "ann" || got.MessageCount != 0 {
			t.Errorf("got %+v, want what callers may not choose ignored", got)
		}
		if got.Agent != "assistant" || got.Source != core.SourceAPI || got.Title != "a\uFFFDb" || got.Instructions != "be \uFFFD kind" || got.UserID != "u1" {
			t.Errorf("got %+v, want the defaults, and texts that can be stored", got)
		}
	})
}

func TestCreateSessionErrors(t *testing.T) {
	t.Parallel()
	many := core.Session{
		Agent: "nobody", Model: "gpt-9", Title: strings.Repeat("x", 501), Timezone: "Mars/Base", UserID: "a\x00b",
		Instructions: strings.Repeat("x", 16<<10+1), Metadata: json.RawMessage(`[]`),
	}
	for _, c := range []struct {
		name   string
		scope  core.Tenant
		in     core.Session
		kind   error
		fields []string
		words  string
	}{
		{"all at once", ann, many, core.ErrInvalid,
			[]string{"title", "instructions", "user_id", "metadata", "timezone", "agent", "model"}, "assistant, broken"},
		{"the server's own time zone", ann, core.Session{Timezone: "Local"}, core.ErrInvalid, []string{"timezone"}, "IANA"},
		{"large metadata", ann, core.Session{Metadata: json.RawMessage(`{"a":"` + strings.Repeat("x", 16<<10) + `"}`)}, core.ErrInvalid, []string{"metadata"}, "at most"},
		{"null metadata", ann, core.Session{Metadata: json.RawMessage(`null`)}, core.ErrInvalid, []string{"metadata"}, "object"},
		{"for another user", core.Tenant{Owner: "ann", User: "u1"}, core.Session{UserID: "u2"}, core.ErrForbidden, nil, "u1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				h := newHouse(t, 0, answer)
				_, err := h.CreateSession(t.Context(), c.scope, c.in)
				wantKind(t, err, c.kind)
				var e *core.Error
				if !errors.As(err, &e) {
					t.Fatalf("got %T, want *core.Error", err)
				}
				var fields []string
				for _, f := range e.Fields {
					fields = append(fields, f.Field)
				}
				if !slices.Equal(fields, c.fields) || !strings.Contains(e.Message, c.words) {
					t.Errorf("got fields %v and message %.200q, want %v and %q", fields, e.Message, c.fields, c.words)
				}
			})
		})
	}
}

func TestSessionsOfAUser(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, answer)
		u1 := core.Tenant{Owner: "ann", User: "u1"}
		s, err := h.CreateSession(t.Context(), u1, core.Session{})
		if err != nil || s.UserID != "u1" {
			t.Fatalf("got user %q and error %v, want u1", s.UserID, err)
		}
		_, err = h.Send(t.Context(), core.Tenant{Owner: "ann", User: "u2"}, core.SendMessage{SessionID: s.ID, Content: "hi"})
		wantKind(t, err, core.ErrNotFound)
		_, err = h.Send(t.Context(), u1, core.SendMessage{SessionID: s.ID, Content: "hi", User: "u2"})
		wantKind(t, err, core.ErrForbidden)
		a, err := h.Send(t.Context(), u1, core.SendMessage{SessionID: s.ID, Content: "hi"})
		if err != nil || a.Run.User != "u1" {
			t.Errorf("got user %q and error %v, want u1", a.Run.User, err)
		}
	})
}

func TestUpdateSession(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, answer)
		var got []core.Event
		go func() {
			for e, err := range h.Watch(t.Context(), ann, h.session.ID, core.Cursor{Live: true}) {
				if err == nil {
					got = append(got, e)
				}
			}
		}()
		synctest.Wait()
		s, err := h.UpdateSession(t.Context(), ann, h.session.ID, core.SessionPatch{
			Title: new("new\x00"), Agent: new(""), Timezone: new("UTC"), Instructions: new(""), Model: new("demo"),
		})
		if err != nil || s.Title != "new\uFFFD" || s.Agent != "assistant" || s.Model != "demo" {
			t.Errorf("got %+v and error %v, want the fields changed", s, err)
		}
		synctest.Wait()
		if len(got) != 1 || got[0].Type != core.EventSessionUpdated {
			t.Errorf("got events %v, want session.updated", got)
		}
		_, err = h.UpdateSession(t.Context(), ann, h.session.ID, core.SessionPatch{
			Title: new(strings.Repeat("x", 501)), Agent: new("nobody"), Timezone: new("x"), Metadata: json.RawMessage(`1`), Model: new("gone"),
		})
		wantKind(t, err, core.ErrInvalid)
		_, err = h.UpdateSession(t.Context(), core.Tenant{Owner: "bob"}, h.session.ID, core.SessionPatch{})
		wantKind(t, err, core.ErrNotFound)
	})
}

func TestArchiveSession(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, answer)
		archive := core.SessionPatch{Archived: new(true)}
		for range 2 {
			if _, err := h.UpdateSession(t.Context(), ann, h.session.ID, archive); err != nil {
				t.Errorf("got error %v, want nil", err)
			}
		}
		_, err := h.UpdateSession(t.Context(), core.Tenant{Owner: "bob"}, h.session.ID, archive)
		wantKind(t, err, core.ErrNotFound)
		_, err = h.Send(t.Context(), ann, core.SendMessage{SessionID: h.session.ID, Content: "hi"})
		wantKind(t, err, core.ErrConflict)
		if back, err := h.UpdateSession(t.Context(), ann, h.session.ID, core.SessionPatch{Archived: new(false)}); err != nil || back.ArchivedAt != nil {
			t.Errorf("got %v and error %v, want the session back", back.ArchivedAt, err)
		}
		if _, err := h.Send(t.Context(), ann, core.SendMessage{SessionID: h.session.ID, Content: "hi"}); err != nil {
			t.Errorf("got error %v, want a message accepted", err)
		}
	})
}

func TestSummarizeChecksItsFocus(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, answer)
		if s, err := h.Summarize(t.Context(), ann, "s", "the\x00 plan"); err != nil || s.Focus != "the\uFFFD plan" {
			t.Errorf("got summary %+v and error %v", s, err)
		}
		_, err := h.Summarize(t.Context(), ann, "s", strings.Repeat("x", 2001))
		wantKind(t, err, core.ErrInvalid)
		<-time.After(time.Second)
	})
}
