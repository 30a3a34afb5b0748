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

// MessagePage is a page of messages, with the queued ones.
type MessagePage struct {
	core.Page[core.Message]
	Pending     []core.Message `json:"pending"`       // accepted but not in the log yet: Seq 0
	LastEventID int64          `json:"last_event_id"` // where to start WatchSession to miss nothing
}

// Messages returns a page of a session's messages in order of Seq.
func (c *Client) Messages(ctx context.Context, id core.SessionID, q core.MessageQuery) (MessagePage, error) {
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	all, order := "", ""
	if q.AllBranches {
		all = "true"
	}
	if q.Descending {
		order = "desc"
	}
	query := pageQuery(q.PageQuery, "before", number(q.Before), "after", number(q.After), "all_branches", all, "order", order)
	return callJSON[MessagePage](ctx, c, getRequest(sessionPath(id, "/messages"), query))
}

// Answer is the result of a message.
type Answer struct {
	Run     core.Run      `json:"run"`     // not ended if the server's time limit passed
	Message *core.Message `json:"message"` // nil = no answer, or none yet
}

// newMessage is the body of a request that sends a message.
type newMessage struct {
	Content         string           `json:"content"`
	ClientMessageID string           `json:"client_message_id,omitempty"`
	Model           string           `json:"model,omitempty"`
	Multitask       core.Multitask   `json:"multitask,omitempty"`
	UserID          string           `json:"user_id,omitempty"`
	Author          string           `json:"author,omitempty"`
	Source          core.Source      `json:"source,omitempty"`
	Metadata        json.RawMessage  `json:"metadata,omitempty"`
	Parts           *[]blobPart      `json:"parts,omitempty"` // an empty list removes all
	Webhook         *webhook         `json:"webhook,omitempty"`
	Options         *core.RunOptions `json:"options,omitempty"`
	After           core.MessageID   `json:"after,omitempty"`
}

func messageRequest(m core.SendMessage) request {
	r := postRequest(sessionPath(m.SessionID, "/messages"), newMessage{
		m.Content, m.ClientMessageID, m.Model, m.Multitask, m.User, m.Author, m.Source, m.Metadata,
		blobParts(m.Parts), webhookOf(m.Webhook), m.Options, m.After,
	})
	if m.Edits != "" {
		r.method, r.path = http.MethodPatch, messagePath(m.SessionID, m.Edits, "")
	}
	return r
}

// Send sends a message, or a new version of a message that it edits, and yields the events of
// its run, up to the one that ends it. It reconnects; the message is accepted once and every
// event is yielded once. It generates a ClientMessageID if there is none. Leaving the loop
// does not stop the run: CancelRun does. The first error ends the sequence.
func (c *Client) Send(ctx context.Context, m core.SendMessage) iter.Seq2[core.Event, error] {
	if m.ClientMessageID == "" {
		m.ClientMessageID = core.NewID[string]()
	}
	return c.runStream(ctx, messageRequest(m))
}

// runStream sends a request that starts a run and yields its events. The request has a
// client_message_id, so that it can be repeated.
func (c *Client) runStream(ctx context.Context, r request) iter.Seq2[core.Event, error] {
	return func(yield func(core.Event, error) bool) {
		var run core.RunID
		s := stream{client: c, isLast: core.EventType.EndsRun}
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
		s.isOver = func(ctx context.Context) (bool, error) {
			if run == "" {
				return false, nil // unknown: the message is sent again
			}
			return c.hasRunEnded(ctx, run)
		}
		s.allEvents(ctx, 0)(yield)
	}
}

// SendAndWait sends a message and returns when its run has ended, or after the server's time
// limit with the current state of the run.
func (c *Client) SendAndWait(ctx context.Context, m core.SendMessage) (Answer, error) {
	return callJSON[Answer](ctx, c, messageRequest(m))
}

// SendAsync sends a message and returns its run immediately.
func (c *Client) SendAsync(ctx context.Context, m core.SendMessage) (core.Run, error) {
	r := messageRequest(m)
	r.header = map[string]string{"Prefer": "respond-async"}
	answer, err := callJSON[Answer](ctx, c, r)
	return answer.Run, err
}

// MessageNumber returns the message with the seq, on any branch. The error is core.ErrNotFound
// if it does not exist or was deleted.
func (c *Client) MessageNumber(ctx context.Context, id core.SessionID, seq int64) (core.Message, error) {
	page, err := c.Messages(ctx, id, core.MessageQuery{After: seq - 1, AllBranches: true, PageQuery: core.PageQuery{Limit: 1}})
	if err != nil {
		return core.Message{}, err
	}
	if len(page.Items) == 0 || page.Items[0].Seq != seq {
		return core.Message{}, core.Errorf(core.ErrNotFound, "message #%d does not exist or was deleted", seq)
	}
	return page.Items[0], nil
}

// Search returns a page of the messages that match q, newest first. The server chooses the
// excerpts.
func (c *Client) Search(ctx context.Context, q core.SearchQuery) (core.SearchPage, error) {
	all := ""
	if q.AllBranches {
		all = "true"
	}
	return callJSON[core.SearchPage](ctx, c, getRequest("/api/v1/search", pageQuery(q.PageQuery, "q", q.Text, "sort", string(q.Sort), "agent", q.Agent, "author", q.Author, "session_id", string(q.SessionID),
		"user_id", q.UserID, "role", string(q.Role), "after", formatTime(q.After), "before", formatTime(q.Before), "all_branches", all)))
}
