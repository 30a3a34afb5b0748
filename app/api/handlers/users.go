package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/sse"
	"bobbin/app/core"
)

// CodeOwnersOnly tells that a request is for API keys and not for end users.
const CodeOwnersOnly = "owners_only"

// OwnersOnly refuses end users: what follows is the owner's, whatever the token may do.
func OwnersOnly(c *gin.Context) error {
	if id, _ := core.IdentityFrom(c.Request.Context()); id.User != "" {
		return ownersOnly("this")
	}
	return nil
}

func ownersOnly(what string) error {
	return &core.Error{Kind: core.ErrForbidden, Code: CodeOwnersOnly, Message: what + " is for API keys, not for end users"}
}

// checkWebhook refuses a webhook of an end user: where the owner's network sends things
// is the owner's.
func checkWebhook(c *gin.Context, w *webhook) error {
	if w != nil && scopeOf(c).User != "" {
		return ownersOnly("webhook")
	}
	return nil
}

// checkUser refuses a filter by another user than the end user who asks.
func checkUser(c *gin.Context, user string) error {
	if scope := scopeOf(c); scope.User != "" && user != "" && user != scope.User {
		return core.Errorf(core.ErrForbidden, "you act for the user %q and not for %q", shorten(scope.User), shorten(user))
	}
	return nil
}

// seen returns what the caller may see of an answer. Webhooks, prompts and settings of
// tools are the owner's, and not for end users.
func seen(c *gin.Context, body any) any {
	if id, _ := core.IdentityFrom(c.Request.Context()); id.User == "" {
		return body
	}
	switch b := body.(type) {
	case core.Session:
		return seenSession(b)
	case core.SessionDetail:
		b.Session = seenSession(b.Session)
		return b
	case core.Page[core.Session]:
		return seenPage(b, seenSession)
	case core.Run:
		return seenRun(b)
	case core.Page[core.Run]:
		return seenPage(b, seenRun)
	case runAnswer:
		b.Run = seenRun(b.Run)
		return b
	case acceptedAnswer:
		b.Run = seenRun(b.Run)
		return b
	case core.Agent:
		return seenAgent(b)
	case core.Page[core.Agent]:
		return seenPage(b, seenAgent)
	default:
		return body
	}
}

func seenSession(s core.Session) core.Session {
	s.Webhook = nil
	return s
}

func seenRun(r core.Run) core.Run {
	r.Webhook = nil
	return r
}

func seenAgent(a core.Agent) core.Agent {
	a.SystemPrompt, a.ToolSettings = "", nil
	return a
}

func seenPage[T any](p core.Page[T], seen func(T) T) core.Page[T] {
	p.Items = slices.Clone(p.Items)
	for i := range p.Items {
		p.Items[i] = seen(p.Items[i])
	}
	return p
}

// seenEvents returns what the caller may see of the events.
func seenEvents(caller core.Identity, events sse.Source) sse.Source {
	if caller.User == "" {
		return events
	}
	return func(ctx context.Context) iter.Seq2[core.Event, error] {
		return func(yield func(core.Event, error) bool) {
			for e, err := range events(ctx) {
				if err == nil && e.Type == core.EventDeliveryUpdated {
					continue
				}
				if err == nil {
					e.Data, err = seenData(e.Data)
				}
				if !yield(e, err) {
					return
				}
			}
		}
	}
}

// seenData returns the data of an event without the webhook of its session or run.
func seenData(data json.RawMessage) (json.RawMessage, error) {
	if !bytes.Contains(data, []byte(`"webhook"`)) {
		return data, nil
	}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, err
	}
	for _, name := range []string{"session", "run"} {
		var part map[string]json.RawMessage
		if whole[name] == nil {
			continue
		}
		if err := json.Unmarshal(whole[name], &part); err != nil {
			return nil, err
		}
		delete(part, "webhook")
		shown, err := json.Marshal(part)
		if err != nil {
			return nil, err
		}
		whole[name] = shown
	}
	return json.Marshal(whole)
}
