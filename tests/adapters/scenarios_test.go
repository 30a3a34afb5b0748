package adapters_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// scenario is one thing that can happen in a model call.
type scenario struct {
	name  string
	with  settings
	req   llm.Request                                                // zero = "hi"
	scene func(*stage)                                               // what the provider does
	drive func(ctx context.Context, t *testing.T, c *caller) outcome // zero = call once
	want  outcome
}

// outcome is what the caller sees.
type outcome struct {
	Text       string
	Reasoning  string
	Calls      string
	Finish     core.FinishReason
	Usage      *core.Usage
	Kind       llm.ErrorKind
	Status     int
	Limit      int
	Requested  int
	RetryAfter time.Duration
	Cause      string // the context's: canceled, deadline
	Says       string // of an error: a part of its message; compared only if wanted
	Requests   int    // that the provider got; compared only if wanted
	Note       string // what else a scenario finds
}

// caller calls one model and looks at what comes.
type caller struct {
	server *server
	model  llm.Model
	req    llm.Request
}

// call calls the model once.
func (c *caller) call(ctx context.Context, onDelta func(llm.Delta)) outcome {
	res, err := llm.Collect(c.model.Stream(ctx, c.req), onDelta)
	return seen(res, err)
}

func seen(res llm.Response, err error) outcome {
	o := outcome{Text: res.Text, Reasoning: res.Reasoning, Finish: res.Finish, Usage: res.Usage}
	var calls []string
	for _, c := range res.ToolCalls {
		calls = append(calls, c.ID+" "+c.Name+" "+c.Arguments)
	}
	o.Calls = strings.Join(calls, " | ")
	if err == nil {
		return o
	}
	e := llm.AsError(err)
	if e == nil {
		o.Note = fmt.Sprintf("not an *llm.Error: %v", err)
		return o
	}
	o.Kind, o.Status, o.Limit, o.Requested, o.RetryAfter, o.Says = e.Kind, e.Status, e.Limit, e.Requested, e.RetryAfter, e.Message
	switch {
	case errors.Is(err, context.DeadlineExceeded) && e.Kind == llm.KindCanceled:
		o.Cause = "deadline"
	case errors.Is(err, context.Canceled):
		o.Cause = "canceled"
	}
	if !errors.Is(err, core.ErrModel) {
		o.Note = "not a core.ErrModel"
	}
	return o
}

// play plays the scenario in the dialect and returns how the outcome differs from
// the one wanted; "" = not at all.
func (sc scenario) play(t *testing.T, d dialect) string {
	t.Helper()
	var diff string
	synctest.Test(t, func(t *testing.T) {
		server := start(t, d, sc.scene)
		c := &caller{server: server, model: server.model(t, sc.with), req: sc.req}
		if len(c.req.Messages) == 0 {
			c.req.Messages = []llm.Message{{Role: core.RoleUser, Content: "hi"}}
		}
		var got outcome
		if sc.drive != nil {
			got = sc.drive(t.Context(), t, c)
		} else {
			got = c.call(t.Context(), nil)
		}
		if d.cloud.signs { // the key is no secret there
			got.Says = strings.ReplaceAll(got.Says, key, "***")
		}
		if strings.Contains(got.Says, key) {
			got.Note += "the key is in the error"
		}
		switch {
		case sc.want.Says == "":
			got.Says = ""
		case strings.Contains(got.Says, sc.want.Says):
			got.Says = sc.want.Says
		}
		if sc.want.Requests > 0 {
			got.Requests = len(server.Received())
		}
		diff = cmp.Diff(sc.want, got)
	})
	return diff
}

// TestScenarios: whatever a provider does, the caller of either adapter sees the
// same (W13).
func TestScenarios(t *testing.T) {
	t.Parallel()
	for _, sc := range scenarios() {
		for _, d := range dialects() {
			t.Run(sc.name+"/"+d.label(), func(t *testing.T) {
				t.Parallel()
				if diff := sc.play(t, d); diff != "" {
					t.Errorf("outcome (-want +got):\n%s", diff)
				}
			})
		}
	}
}
