package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"path"
	"strconv"

	"bobbin/app/core"
)

// MessagePage is a page of messages, and those that wait for their turn.
type MessagePage struct {
	core.Page[core.Message]
	Pending     []core.Message `json:"pending"`       // accepted, not in the log yet: Seq 0
	LastEventID int64          `json:"last_event_id"` // where to begin with WatchSession to miss nothing
}

// Messages returns a page of a session's messages in the order of their Seq.
func (c *Client) Messages(ctx context.Context, id core.SessionID, q core.MessageQuery) (MessagePage, error) {
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	all := ""
	if q.AllBranches {
		all = "true"
	}
	query := pageQuery(q.PageQuery, "before", number(q.Before), "after", number(q.After), "all_branches", all)
	return call[MessagePage](ctx, c, get(sessionPath(id, "/messages"), query))
}

// Answer is what a message came to.
type Answer struct {
	Run     core.Run      `json:"run"`     // not ended if it took too long to wait for
	Message *core.Message `json:"message"` // nil = the run has no answer, or none yet
}

// newMessage is the body of a message.
type newMessage struct {
	Content         string          `json:"content"`
	ClientMessageID string          `json:"client_message_id,omitempty"`
	Model           string          `json:"model,omitempty"`
	Multitask       core.Multitask  `json:"multitask,omitempty"`
	UserID          string          `json:"user_id,omitempty"`
	Author          string          `json:"author,omitempty"`
	Source          core.Source     `json:"source,omitempty"`
	Metadata        json.RawMessage `json:"metadata,omitempty"`
	Parts           *[]blobPart     `json:"parts,omitempty"` // an empty list says that there are none
	Webhook         *webhook        `json:"webhook,omitempty"`
}

func messageRequest(m core.SendMessage) request {
	r := post(sessionPath(m.SessionID, "/messages"), newMessage{
		m.Content, m.ClientMessageID, m.Model, m.Multitask, m.User, m.Author, m.Source, m.Metadata,
		blobParts(m.Parts), webhookOf(m.Webhook),
	})
	if m.Edits != "" {
		r.method, r.path = http.MethodPatch, messagePath(m.SessionID, m.Edits, "")
	}
	return r
}

// Send sends a message, or a new version of one that it edits, and yields the
// events of its run, to the one that ends it.
// It mends broken connections, so that the message is accepted once and every
// event comes once; a ClientMessageID is made up if there is none. Leaving the
// loop does not stop the run: CancelRun does. The first error ends the sequence.
func (c *Client) Send(ctx context.Context, m core.SendMessage) iter.Seq2[core.Event, error] {
	if m.ClientMessageID == "" {
		m.ClientMessageID = core.NewID[string]()
	}
	return c.runStream(ctx, messageRequest(m))
}

// runStream sends a request that begins a run and yields its events. The request
// has a client_message_id, so that it may be sent again.
func (c *Client) runStream(ctx context.Context, r request) iter.Seq2[core.Event, error] {
	return func(yield func(core.Event, error) bool) {
		var run core.RunID
		s := stream{client: c, last: endsRun}
		s.open = func(ctx context.Context, after int64) (*http.Response, error) {
			if run != "" {
				return c.openEvents(ctx, runPath(run, "/events"), after)
			}
			r.header = map[string]string{"Accept": "text/event-stream"}
			response, err := c.send(ctx, r)
			if err != nil {
				return nil, err
			}
			if location := response.Header.Get("Location"); location != "" {
				run = core.RunID(path.Base(location))
			}
			return response, nil
		}
		s.over = func(ctx context.Context) (bool, error) {
			if run == "" {
				return false, nil // not told yet: the message is sent again
			}
			return c.ended(ctx, run)
		}
		s.all(ctx, 0)(yield)
	}
}

// SendAndWait sends a message and returns when its run has ended, or after the
// server's time limit with the run as it is then.
func (c *Client) SendAndWait(ctx context.Context, m core.SendMessage) (Answer, error) {
	return call[Answer](ctx, c, messageRequest(m))
}

// SendAsync sends a message and returns its run at once.
func (c *Client) SendAsync(ctx context.Context, m core.SendMessage) (core.Run, error) {
	r := messageRequest(m)
	r.header = map[string]string{"Prefer": "respond-async"}
	answer, err := call[Answer](ctx, c, r)
	return answer.Run, err
}

// MessageNumber returns the message with the seq, on whatever branch. The error is
// core.ErrNotFound if there is none, or it was deleted.
func (c *Client) MessageNumber(ctx context.Context, id core.SessionID, seq int64) (core.Message, error) {
	page, err := c.Messages(ctx, id, core.MessageQuery{After: seq - 1, AllBranches: true, PageQuery: core.PageQuery{Limit: 1}})
	if err != nil {
		return core.Message{}, err
	}
	if len(page.Items) == 0 || page.Items[0].Seq != seq {
		return core.Message{}, core.Errorf(core.ErrNotFound, "there is no message #%d, or it was deleted", seq)
	}
	return page.Items[0], nil
}
