package client_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/api"
	"bobbin/app/api/auth"
	"bobbin/app/api/handlers"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apitest"
)

// dial returns a client of a server over the backend.
func dial(t *testing.T, b *apitest.Backend, key string) *client.Client {
	t.Helper()
	server := httptest.NewServer(api.New(api.Options{
		Services: b.Services(),
		Keys:     &apitest.Keys{},
		Auth:     auth.New(auth.Options{Keys: []auth.Key{auth.NewKey("ann", "s3cret", core.ReadWrite)}, Required: true}),
		Build:    handlers.Build{Version: "1.2.3"},
		Logger:   slog.New(slog.DiscardHandler),
	}))
	t.Cleanup(server.Close)
	c, err := client.New(client.Options{URL: server.URL + "/", Key: key, HTTP: server.Client()})
	if err != nil {
		t.Fatalf("new client: %v", err)
	}
	return c
}

// TestRoundTrips: what is asked arrives at the services, and what they answer
// comes back, through the real server.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	title := "T"
	session := core.Session{Agent: "a", Model: "m", Title: "T", UserID: "u", Timezone: "UTC", Instructions: "i", Source: core.SourceCLI, Metadata: []byte(`{"k":1}`)}
	message := core.SendMessage{SessionID: apitest.SessionID, User: "u", Content: "Hi", ClientMessageID: "c", Model: "m",
		Multitask: core.MultitaskReject, Source: core.SourceWeb, Author: "Ann", Metadata: []byte(`{"k":1}`)}
	page := core.PageQuery{Limit: 3, Cursor: "a b&c"}
	tests := []struct {
		name string
		ask  func(ctx context.Context, c *client.Client) (any, error)
		want func(b *apitest.Backend) any
		call string // the method that must have been called …
		args []any  // … with these
	}{
		{"create session", func(ctx context.Context, c *client.Client) (any, error) { return c.CreateSession(ctx, session) },
			func(*apitest.Backend) any {
				s := session
				s.ID, s.Status, s.CreatedAt, s.UpdatedAt = apitest.SessionID, core.SessionIdle, apitest.Time(), apitest.Time()
				return s
			}, "CreateSession", []any{session}},
		{"session", func(ctx context.Context, c *client.Client) (any, error) { return c.Session(ctx, apitest.SessionID) },
			func(b *apitest.Backend) any { s := b.Session; s.LastEventSeq = 0; return s }, "Sessions.Get", []any{apitest.SessionID}},
		{"sessions", func(ctx context.Context, c *client.Client) (any, error) {
			p, err := c.Sessions(ctx, core.SessionQuery{PageQuery: page, Agent: "a", UserID: "u", Text: "x y", Archived: true})
			return *p.NextCursor, err
		}, func(*apitest.Backend) any { return "next" }, "Sessions.List", []any{core.SessionQuery{PageQuery: page, Order: core.OrderByRelevance, Agent: "a", UserID: "u", Text: "x y", Archived: true}}},
		{"search", func(ctx context.Context, c *client.Client) (any, error) {
			p, err := c.Search(ctx, core.SearchQuery{PageQuery: page, Text: "a b", SessionID: apitest.SessionID, UserID: "u", Role: core.RoleUser,
				After: apitest.Time(), Before: apitest.Time(), AllBranches: true})
			return p.Items[0].Excerpt, err
		}, func(*apitest.Backend) any { return "Hi <there>" }, "Search.Messages", []any{core.SearchQuery{PageQuery: page, Text: "a b",
			SessionID: apitest.SessionID, UserID: "u", Role: core.RoleUser, After: apitest.Time(), Before: apitest.Time(), AllBranches: true}}},
		{"update session", func(ctx context.Context, c *client.Client) (any, error) {
			s, err := c.UpdateSession(ctx, apitest.SessionID, core.SessionPatch{Title: &title, Metadata: []byte(`{}`), Archived: new(false)})
			return s.Title, err
		}, func(*apitest.Backend) any { return "T" }, "UpdateSession", []any{apitest.SessionID, core.SessionPatch{Title: &title, Metadata: []byte(`{}`), Archived: new(false)}}},
		{"messages", func(ctx context.Context, c *client.Client) (any, error) {
			return c.Messages(ctx, apitest.SessionID, core.MessageQuery{PageQuery: page, Before: 9, After: 2, AllBranches: true})
		}, func(b *apitest.Backend) any {
			return client.MessagePage{Page: core.Page[core.Message]{Items: b.Messages}, Pending: []core.Message{b.Queued.UserMessage()}, LastEventID: 4}
		}, "Messages.List", []any{apitest.SessionID, core.MessageQuery{PageQuery: page, Before: 9, After: 2, AllBranches: true}}},
		{"send and wait", func(ctx context.Context, c *client.Client) (any, error) { return c.SendAndWait(ctx, message) },
			func(b *apitest.Backend) any { return client.Answer{Run: b.Run, Message: &b.Messages[1]} }, "Send", []any{message}},
		{"send async", func(ctx context.Context, c *client.Client) (any, error) { return c.SendAsync(ctx, message) },
			func(b *apitest.Backend) any { return b.Accepted }, "Send", []any{message}},
		{"run", func(ctx context.Context, c *client.Client) (any, error) { return c.Run(ctx, apitest.RunID) },
			func(b *apitest.Backend) any { return b.Accepted }, "Runs.Get", []any{apitest.RunID}},
		{"runs", func(ctx context.Context, c *client.Client) (any, error) { return c.Runs(ctx, apitest.SessionID, page) },
			func(b *apitest.Backend) any { return core.Page[core.Run]{Items: []core.Run{b.Queued, b.Run}} }, "Runs.List", []any{apitest.SessionID, page}},
		{"cancel", func(ctx context.Context, c *client.Client) (any, error) {
			run, err := c.CancelRun(ctx, apitest.RunID, true)
			return run.Status, err
		}, func(*apitest.Backend) any { return core.RunCanceled }, "Cancel", []any{apitest.RunID, true}},
		{"context", func(ctx context.Context, c *client.Client) (any, error) { return c.Context(ctx, apitest.SessionID) },
			func(b *apitest.Backend) any { return b.Report }, "Context", []any{apitest.SessionID}},
		{"prompt", func(ctx context.Context, c *client.Client) (any, error) { return c.Prompt(ctx, apitest.SessionID) },
			func(b *apitest.Backend) any { return b.Prompt }, "Prompt", []any{apitest.SessionID}},
		{"summarize", func(ctx context.Context, c *client.Client) (any, error) {
			s, err := c.Summarize(ctx, apitest.SessionID, "names")
			return s.Focus, err
		}, func(*apitest.Backend) any { return "names" }, "Summarize", []any{apitest.SessionID, "names"}},
		{"summaries", func(ctx context.Context, c *client.Client) (any, error) {
			return c.Summaries(ctx, apitest.SessionID, core.PageQuery{})
		}, func(b *apitest.Backend) any { return core.Page[core.Summary]{Items: []core.Summary{b.Summary}} }, "Summaries.List", []any{apitest.SessionID, core.PageQuery{}}},
		{"summary", func(ctx context.Context, c *client.Client) (any, error) { return c.Summary(ctx, apitest.SessionID, 1) },
			func(b *apitest.Backend) any { return b.Summary }, "Summaries.Get", []any{apitest.SessionID, 1}},
		{"agents", func(ctx context.Context, c *client.Client) (any, error) { return c.Agents(ctx) },
			func(b *apitest.Backend) any { return []core.AgentDetail{{Agent: b.Agent, Models: b.Models("")}} }, "", nil},
		{"agent", func(ctx context.Context, c *client.Client) (any, error) { return c.Agent(ctx, "assistant") },
			func(b *apitest.Backend) any { return core.AgentDetail{Agent: b.Agent, Models: b.Models("")} }, "", nil},
		{"graph", func(ctx context.Context, c *client.Client) (any, error) { return c.Graph(ctx, "assistant") },
			func(b *apitest.Backend) any { return b.Graph }, "", nil},
		{"mermaid", func(ctx context.Context, c *client.Client) (any, error) { return c.Mermaid(ctx, "assistant") },
			func(*apitest.Backend) any { return "graph TD\n\tllm_node --> tool_node\n" }, "", nil},
		{"version", func(ctx context.Context, c *client.Client) (any, error) { return c.Version(ctx) },
			func(*apitest.Backend) any { return client.Version{Version: "1.2.3"} }, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			backend := apitest.New()
			got, err := tt.ask(t.Context(), dial(t, backend, "s3cret"))
			if err != nil {
				t.Fatalf("got error %v, want none", err)
			}
			if diff := cmp.Diff(tt.want(backend), got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if tt.call == "" {
				return
			}
			want := apitest.Call{Method: tt.call, Scope: core.Tenant{Owner: "ann"}, Args: tt.args}
			var seen bool
			for _, call := range backend.Calls() {
				seen = seen || cmp.Equal(want, call)
			}
			if !seen {
				t.Errorf("got calls %v, want %v among them", backend.Calls(), want)
			}
		})
	}
}

// TestProblems: the kind of an error survives the way over HTTP.
func TestProblems(t *testing.T) {
	t.Parallel()
	kinds := []error{
		core.ErrInvalid, core.ErrForbidden, core.ErrUnauthorized, core.ErrNotFound, core.ErrConflict, core.ErrStale, core.ErrCanceled, core.ErrTooLarge,
		core.ErrUnprocessable, core.ErrContextFloor, core.ErrRateLimited, core.ErrUnavailable, core.ErrModel, core.ErrTimeout,
	}
	for _, kind := range kinds {
		backend := apitest.New()
		fields := []core.FieldError{{Field: "f", Detail: "d"}}
		backend.Hooks["Context"] = func(context.Context) error { return &core.Error{Kind: kind, Message: "in words", Fields: fields} }
		_, err := dial(t, backend, "s3cret").Context(t.Context(), apitest.SessionID)
		var problem *client.ProblemError
		if !errors.Is(err, kind) || !errors.As(err, &problem) {
			t.Errorf("got %v, want %v", err, kind)
			continue
		}
		if err.Error() != "in words" || problem.RequestID == "" || !cmp.Equal(problem.Errors, fields) {
			t.Errorf("got problem %+v, want the words, the fields and a request id", problem)
		}
	}
	backend := apitest.New()
	backend.Hooks["Context"] = func(context.Context) error { return errors.New("secret") }
	_, err := dial(t, backend, "s3cret").Context(t.Context(), apitest.SessionID)
	var problem *client.ProblemError
	if !errors.As(err, &problem) || err.Error() != "internal error (request id "+problem.RequestID+")" {
		t.Errorf("got %v, want an internal error with its request id", err)
	}
	if _, err := dial(t, apitest.New(), "wrong").Version(t.Context()); !errors.Is(err, core.ErrUnauthorized) {
		t.Errorf("got %v with a wrong key, want ErrUnauthorized", err)
	}
	if _, err := dial(t, apitest.New(), "s3cret").Mermaid(t.Context(), "nobody"); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

func TestSendThroughTheServer(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	var got []core.EventType
	for e, err := range dial(t, backend, "s3cret").Send(t.Context(), core.SendMessage{SessionID: apitest.SessionID, Content: "Hi"}) {
		if err != nil {
			t.Fatalf("got error %v, want none", err)
		}
		if e.SessionID != apitest.SessionID || e.RunID != apitest.RunID || !e.At.Equal(apitest.Time()) {
			t.Errorf("got event %+v, want its session, run and time", e)
		}
		got = append(got, e.Type)
	}
	var want []core.EventType
	for _, e := range backend.Events {
		want = append(want, e.Type)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	sent := backend.Calls()[0].Args[0].(core.SendMessage)
	if !core.ValidID(sent.ClientMessageID) {
		t.Errorf("got client message id %q, want one made up", sent.ClientMessageID)
	}
}

func TestWatchThroughTheServer(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	c := dial(t, backend, "s3cret")
	var seqs []int64
	for e, err := range c.WatchRun(t.Context(), apitest.RunID, core.Cursor{After: 2}) {
		if err != nil {
			t.Fatalf("got error %v, want none", err)
		}
		seqs = append(seqs, e.Seq)
	}
	if diff := cmp.Diff([]int64{0, 0, 0, 0, 3, 4}, seqs); diff != "" {
		t.Errorf("numbers of a run (-want +got):\n%s", diff)
	}
	for e, err := range c.WatchSession(t.Context(), apitest.SessionID, core.Cursor{After: 3}) {
		if err != nil {
			t.Fatalf("got error %v, want none", err)
		}
		if e.Seq == 4 {
			break
		}
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "localhost:8080", "ftp://localhost", "http://", "http://a b", ":"} {
		if _, err := client.New(client.Options{URL: url}); err == nil {
			t.Errorf("got no error for url %q, want one", url)
		}
	}
}
