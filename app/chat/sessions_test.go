package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/chat"
	"bobbin/app/core"
	"bobbin/app/core/quota"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/app/events"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

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
				must.True(t, errors.As(err, &e), "got %T, want *core.Error", err)
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

// The alias of an archived session moves to one fork of it, however many open it concurrently.
func TestOpenArchivedSession(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, _ := openService(t, d)
		sessions := repositories.NewSessions(d.Gorm)
		tenant, thread := core.Tenant{Owner: "bea"}, core.Alias{Surface: core.SourceSlack, Name: "T1/C1/1.2"}
		first := must.Get(h.OpenSession(t.Context(), tenant, thread, core.Session{Title: "The pump", UserID: "slack:T1/U1"}))(t)
		must.Get(h.Messages.Append(t.Context(), tenant, core.AppendMessages{SessionID: first.ID, Messages: []core.Message{{Role: core.RoleUser, Content: "The pump is red."}}}))(t)
		must.Get2(sessions.Update(t.Context(), tenant, first.ID, core.SessionPatch{Archived: new(true)}))(t)
		for _, limits := range []quota.StoredLimits{
			{Owner: 3000, Sum: sessions.StoredBytes}, // there is room for a message, not for another session
			{CheckDisk: func() error { return core.Errorf(core.ErrTooLarge, "the disk is full") }},
		} {
			h.Stored = quota.NewStored(limits)
			compare.Error(t, "without room for a fork: error: want ErrTooLarge", core.ErrTooLarge, compare.ErrorOf(h.OpenSession(t.Context(), tenant, thread, core.Session{})))
		}
		h.Stored = nil
		var wait sync.WaitGroup
		forks := make([]core.Session, 6)
		for i := range forks {
			wait.Go(func() {
				s, err := h.OpenSession(t.Context(), tenant, thread, core.Session{})
				if err != nil {
					t.Error(err)
				}
				forks[i] = s
			})
		}
		wait.Wait()
		for _, s := range forks {
			if s.ID != forks[0].ID || s.ID == first.ID || s.ArchivedAt != nil || s.MessageCount != 1 || s.Title != "The pump" {
				t.Fatalf("got the session %+v, want one fork of %s", s, first.ID)
			}
		}
		compare.Error(t, "another user: want ErrNotFound", core.ErrNotFound, compare.ErrorOf(h.OpenSession(t.Context(), core.Tenant{Owner: "bea", User: "bob"}, thread, core.Session{})))
	})
}

// Whatever stores something is refused where nothing more may be stored; what stores nothing is not.
func TestNothingIsStoredWithoutRoom(t *testing.T) {
	t.Parallel()
	full := quota.NewStored(quota.StoredLimits{Owner: 1, Sum: func(context.Context, core.Tenant) (int64, error) { return 2, nil }})
	h, id := openService(t, dbtest.SQLite(t))
	h.Summaries, h.Limits.Result, h.Stored = versions{}, 100, full
	for name, store := range map[string]func() error{
		"a session": func() error { _, err := h.CreateSession(t.Context(), ann, core.Session{}); return err },
		"a message": func() error {
			_, err := h.Send(t.Context(), ann, core.SendMessage{SessionID: id, Content: "x"})
			return err
		},
		"an answer": func() error { _, err := h.Regenerate(t.Context(), ann, core.Regenerate{SessionID: id}); return err },
		"a fork":    func() error { _, err := h.Fork(t.Context(), ann, core.ForkSession{SessionID: id}); return err },
		"metadata": func() error {
			_, err := h.UpdateMessage(t.Context(), ann, id, "m", core.MessagePatch{Metadata: json.RawMessage(`{"a":1}`)})
			return err
		},
		"feedback": func() error {
			_, err := h.UpdateMessage(t.Context(), ann, id, "m", core.MessagePatch{Feedback: &core.Feedback{Rating: core.RatingUp, Comment: "x"}})
			return err
		},
		"metadata of a session": func() error {
			_, err := h.UpdateSession(t.Context(), ann, id, core.SessionPatch{Metadata: json.RawMessage(`{"a":1}`)})
			return err
		},
		"instructions": func() error {
			_, err := h.UpdateSession(t.Context(), ann, id, core.SessionPatch{Instructions: new("x")})
			return err
		},
		"a standing instruction": func() error { _, err := h.AddInstruction(t.Context(), ann, id, "x"); return err },
		"another standing instruction": func() error {
			_, err := h.EditInstruction(t.Context(), ann, id, "i", "x")
			return err
		},
		"results": func() error {
			_, err := h.AnswerCalls(t.Context(), ann, core.AnswerCalls{SessionID: id, Results: []core.CallResult{{ToolCallID: "c", Result: "x"}}}, core.SessionAgent{})
			return err
		},
		"a summary": func() error {
			_, err := h.EditSummary(t.Context(), ann, id, core.SummaryEdit{Content: "x"})
			return err
		},
		"a summary made now": func() error { _, err := h.Summarize(t.Context(), ann, id, ""); return err },
		"an earlier summary": func() error { _, err := h.Restore(t.Context(), ann, id, 1); return err },
		"a decision": func() error {
			_, err := h.Decide(t.Context(), ann, "r", "a", core.ApprovalDecision{Result: new("x")})
			return err
		},
	} {
		var shown *core.Error
		if err := store(); !errors.As(err, &shown) || shown.Code != quota.CodeStorageFull {
			t.Errorf("%s: got error %v, want %s", name, err, quota.CodeStorageFull)
		}
	}
}

// versions is a store whose versions of summaries are empty.
type versions struct{ core.SummaryStore }

func (versions) Get(context.Context, core.Tenant, core.SessionID, int) (core.Summary, error) {
	return core.Summary{}, nil
}

// A webhook that could never be told anything is refused when it is named; what is
// said of it does not show its secret.
func TestWebhooksAreChecked(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, answer)
		for url, want := range map[string]string{
			"https://example.com/hook?a=b": "", "https://[2606:4700:4700::1111]:8443/": "",
			"http://example.com": "https://", "ftp://example.com": "https://", "example.com": "not an address", "": "not an address", "https://": "not an address",
			"https://u:p@example.com": "a user", "https://example.com/#x": "fragment", "https://127.0.0.1/": "public", "https://[::1]/": "public",
			"https://169.254.169.254/": "public", "https://example.com/" + strings.Repeat("x", 2048): "2048", "https://a.example/\x00": "not an address",
		} {
			_, err := h.CreateSession(t.Context(), ann, core.Session{Webhook: &core.Webhook{URL: core.Target(url)}})
			compare.True(t, (want != "" || err == nil) && (want == "" || (errors.Is(err, core.ErrInvalid) && strings.Contains(err.Error(), want))), "%q: got %v, want %q", url, err, want)
		}
		const good = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
		for secret, fine := range map[string]bool{good: true, "hush": false, "whsec_hush": false, "whsec_" + strings.Repeat("QUJD", 22): false} {
			_, err := h.CreateSession(t.Context(), ann, core.Session{Webhook: &core.Webhook{URL: "https://example.com", Secret: secret}})
			compare.True(t, (err == nil) == fine && (err == nil || !strings.Contains(err.Error(), "hush")), "secret %q: got %v, want fine: %t", secret, err, fine)
		}
	})
}

// What people ask of a context is checked, cleaned and counted before it is planned.
func TestContextControl(t *testing.T) {
	t.Parallel()
	h, id := openService(t, dbtest.SQLite(t))
	ctx := t.Context()
	plan := must.Get(h.DryRun(ctx, ann, id, core.PlanPreview{Model: "demo", Policy: "ratio"}))(t)
	with := must.Get(h.DryRun(ctx, ann, id, core.PlanPreview{Content: strings.Repeat("x", 97) + "\x00"}))(t)
	compare.True(t, plan.Context.Model == "demo" && plan.Context.Policy == "ratio" && with.Tokens-plan.Tokens >= 100, "got %+v and %+v, want the text cleaned and counted", plan, with)
	for name, tt := range map[string]struct {
		ask  core.PlanPreview
		kind error
		says string
	}{
		"agent":  {core.PlanPreview{Agent: "nobody"}, core.ErrInvalid, `"nobody" does not exist; the agents are`},
		"model":  {core.PlanPreview{Model: "nobody"}, core.ErrInvalid, `model cannot be used: model "nobody" is not known`},
		"policy": {core.PlanPreview{Policy: "budge"}, core.ErrInvalid, `"budge" does not exist (did you mean budget?); the policies are window, budget`},
		"nobody": {core.PlanPreview{Policy: "nothing like it"}, core.ErrInvalid, "does not exist; the policies are window"},
		"text":   {core.PlanPreview{Content: strings.Repeat("x", 101)}, core.ErrTooLarge, "at most 100"},
	} {
		if _, err := h.DryRun(ctx, ann, id, tt.ask); !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want %q", name, err, tt.says)
		}
	}
	made := must.Get(h.Summarize(ctx, ann, id, "the\x00 plan"))(t)
	compare.Error(t, "a long focus", core.ErrInvalid, compare.ErrorOf(h.Summarize(ctx, ann, id, strings.Repeat("x", 2001))))
	compare.Equal(t, "edited", "a\uFFFD", must.Get(h.EditSummary(ctx, ann, id, core.SummaryEdit{Content: "a\x00", Version: made.Version}))(t).Content)
	if _, err := h.EditSummary(ctx, ann, id, core.SummaryEdit{Content: strings.Repeat("x", 101)}); !errors.Is(err, core.ErrTooLarge) || !strings.Contains(err.Error(), "the summary has 101 bytes") {
		t.Errorf("edit: got %v, want ErrTooLarge", err)
	}
}

func TestUpdateSession(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, answer)
		var got []core.Event
		go func() {
			for e, err := range h.Feed.Watch(t.Context(), ann, h.session.ID, core.Cursor{Live: true}) {
				if err == nil {
					got = append(got, e)
				}
			}
		}()
		synctest.Wait()
		s, err := h.UpdateSession(t.Context(), ann, h.session.ID, core.SessionPatch{
			Title: new("new\x00"), Agent: new(""), Timezone: new("UTC"), Instructions: new(""), Model: new("demo"),
		})
		compare.True(t, err == nil && s.Title == "new\uFFFD" && s.Agent == "assistant" && s.Model == "demo", "got %+v and error %v, want the fields changed", s, err)
		synctest.Wait()
		compare.True(t, len(got) == 1 && got[0].Type == core.EventSessionUpdated, "got events %v, want session.updated", got)
		_, err = h.UpdateSession(t.Context(), ann, h.session.ID, core.SessionPatch{
			Title: new(strings.Repeat("x", 501)), Agent: new("nobody"), Timezone: new("x"), Metadata: json.RawMessage(`1`), Model: new("gone"),
		})
		wantKind(t, err, core.ErrInvalid)
		wantKind(t, compare.ErrorOf(h.UpdateSession(t.Context(), core.Tenant{Owner: "bob"}, h.session.ID, core.SessionPatch{})), core.ErrNotFound)
	})
}

// slackApp is an app that is installed in every workspace, T1A by itself.
type slackApp struct{}

func (slackApp) CheckInstalled(context.Context, string) error { return nil }
func (slackApp) OnlyTeam(context.Context) (string, error)     { return "T1A", nil }
func (slackApp) LookUp(context.Context, core.SlackPost) error { return nil }
func (slackApp) Describe(context.Context, core.SlackThread) core.SlackPlace {
	return core.SlackPlace{Link: "https://acme.slack.com/archives/C1A/p1700000000000100", ChannelName: "general"}
}

// A session is attached to a thread, its mode changed, and detached; not while Slack is off. Ids that
// Slack does not have are refused.
func TestAttachSlack(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		sessions := repositories.NewSessions(d.Gorm)
		stored := repositories.NewEvents(d.Gorm)
		feed := events.New(events.NewLocal(0), stored, slog.New(slog.DiscardHandler))
		o := chat.Options{Sessions: sessions, Slack: repositories.NewSlackThreads(d.Gorm), Counter: counter{}, Feed: feed}
		off := chat.New(o)
		o.SlackApp = slackApp{}
		h := chat.New(o)
		session := must.Get(sessions.Create(t.Context(), core.Session{Owner: "ann", Agent: "assistant"}))(t)
		tenant, thread := core.Tenant{Owner: "ann"}, core.SlackThread{SessionID: session.ID, Team: "T1A", Channel: "C1A", Thread: "1700000000.000100"}
		compare.Error(t, "Slack is off", core.ErrInvalid, compare.ErrorOf(off.AttachSlack(t.Context(), tenant, thread)))
		want := thread
		want.Owner, want.Mode = "ann", core.SlackToSlack
		for range 2 {
			if got, err := h.AttachSlack(t.Context(), tenant, thread); err != nil || got != want {
				t.Fatalf("got %+v (%v), want %+v", got, err, want)
			}
		}
		thread.Team = "" // there is only one
		thread.Mode, want.Mode = core.SlackTwoWay, core.SlackTwoWay
		compare.Equal(t, "another mode", want, must.Get(h.AttachSlack(t.Context(), tenant, thread))(t))
		got := must.Get(h.SlackThread(t.Context(), tenant, session.ID))(t)
		compare.True(t, got.SlackThread == want && got.ChannelName == "general" && len(got.Faults) == 0, "got %+v, want %+v", got, want)
		compare.Error(t, "another owner", core.ErrNotFound, compare.ErrorOf(h.AttachSlack(t.Context(), core.Tenant{Owner: "eve"}, thread)))
		if _, err := h.AttachSlack(t.Context(), tenant, core.SlackThread{SessionID: session.ID, Team: "acme", Channel: "#general", Thread: "now", Mode: "both"}); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("wrong ids: got error %v, want ErrInvalid", err)
		}
		must.Do(t, h.DetachSlack(t.Context(), tenant, session.ID))
		compare.Error(t, "detached", core.ErrNotFound, compare.ErrorOf(h.SlackThread(t.Context(), tenant, session.ID)))
		page, _, err := stored.Page(t.Context(), session.ID, 0, 10)
		var told []string
		for _, e := range page {
			data, err := json.Marshal(e.Data.(core.SessionData).Slack)
			must.Do(t, err)
			told = append(told, string(data))
		}
		place := `{"session_id":"` + string(session.ID) + `","team":"T1A","channel":"C1A","thread":"1700000000.000100","mode":`
		if wantTold := []string{place + `"to_slack"}`, place + `"two_way"}`, "{}"}; err != nil || !slices.Equal(told, wantTold) {
			t.Errorf("got the events %q (%v), want %q", told, err, wantTold)
		}
	})
}

// A post that Slack refused is sent again, or listed no more; a request with an idempotency key that is
// repeated finds that it was done.
func TestFixSlackPost(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		sessions, posts, keys := repositories.NewSessions(d.Gorm), repositories.NewSlackPosts(d.Gorm), repositories.NewIdempotencyKeys(d.Gorm)
		feed := events.New(events.NewLocal(0), repositories.NewEvents(d.Gorm), slog.New(slog.DiscardHandler))
		h := chat.New(chat.Options{Sessions: sessions, Slack: repositories.NewSlackThreads(d.Gorm), SlackPosts: posts, SlackApp: slackApp{}, Counter: counter{}, Feed: feed})
		tenant, session := core.Tenant{Owner: "ann"}, must.Get(sessions.Create(t.Context(), core.Session{Owner: "ann", Agent: "assistant"}))(t)
		must.Get(h.AttachSlack(t.Context(), tenant, core.SlackThread{SessionID: session.ID, Team: "T1A", Channel: "C1A", Thread: "1700000000.000100"}))(t)
		added := must.Get(repositories.NewMessages(d.Gorm).Append(t.Context(), tenant, core.AppendMessages{SessionID: session.ID, Messages: []core.Message{
			{Role: core.RoleUser, Content: "a"}, {Role: core.RoleUser, Content: "b"}, {Role: core.RoleUser, Content: "c"}}}))(t)
		for i, action := range []core.SlackAction{core.SlackSend, core.SlackDismiss, core.SlackLook} {
			p := core.SlackPost{
				SessionID: session.ID, ItemID: string(added.Messages[i].ID), Owner: "ann", Kind: core.SlackPostMessage,
				Team: "T1A", Channel: "C1A", Thread: "1700000000.000100", State: core.SlackPostUnknown, Error: "no answer", CreatedAt: core.Now(),
			}
			must.Do(t, d.Gorm.Create(&p).Error)
			fix := core.SlackPostFix{SessionID: session.ID, ItemID: p.ItemID, Action: action}
			for _, repeated := range []bool{false, true} {
				work := core.KeyedWork{Request: core.KeyedRequest{Owner: "ann", Key: string(action), Token: core.NewID[string](), Keep: time.Hour, Work: time.Hour}, BodyHash: func() (string, error) { return "h", nil }}
				if known := must.Get(keys.Begin(t.Context(), work.Request))(t); known != nil {
					work.Result = known.Result
				}
				compare.Equal(t, string(action)+" committed before", repeated, work.Result != nil)
				ctx := core.WithKeyedWork(t.Context(), work)
				compare.Error(t, string(action), nil, h.FixSlackPost(ctx, tenant, fix))
				if p.TS = "1700000000.000200"; action == core.SlackLook && !repeated { // as slackApp does not
					must.Do(t, posts.Confirm(ctx, p))
				}
			}
			_, err := posts.Fault(t.Context(), tenant, session.ID, p.ItemID, 0)
			compare.Error(t, string(action)+": its fault", core.ErrNotFound, err)
		}
	})
}
