package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"bobbin/app/chat"
	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/app/events"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

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
		if got, err := h.SlackThread(t.Context(), tenant, session.ID); err != nil || got.SlackThread != want || got.ChannelName != "general" || len(got.Faults) > 0 {
			t.Errorf("got %+v (%v), want %+v", got, err, want)
		}
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
