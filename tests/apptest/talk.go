package apptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/seed"
)

// NewSession creates a session.
func NewSession(t testing.TB, c *client.Client, in ops.NewSession) core.SessionID {
	t.Helper()
	made := must.Get(client.Call(t.Context(), c, ops.CreateSession, in))(t)
	return made.ID
}

// EventData returns the data of an event.
func EventData[T any](t testing.TB, e core.Event) T {
	t.Helper()
	d, ok := e.Data.(T)
	must.True(t, ok, "the data of %s are %T", e.Type, e.Data)
	return d
}

// Turn is what the stream of one run has.
type Turn struct {
	Run      core.Run // as its last event has it
	Events   []core.Event
	Deltas   int
	Streamed int                       // assistant messages that came as deltas before they were stored
	Messages []core.Message            // created, in order
	Texts    map[core.MessageID]string // put together from the deltas
	Question core.Message              // the user's message
	Answer   core.Message              // the last assistant message
}

// ReadTurn reads a run's stream to its end and checks what every stream promises:
// ascending numbers, the end last, and deltas that amount to the stored messages.
// A message that was stored before the stream began comes without deltas.
func ReadTurn(t testing.TB, stream iter.Seq2[core.Event, error]) Turn {
	t.Helper()
	got := Turn{Texts: map[core.MessageID]string{}}
	var last int64
	for e, err := range stream {
		must.Do(t, err)
		compare.True(t, !got.Run.Status.Ended(), "got %s after the end of the run", e.Type)
		compare.True(t, e.Seq == 0 || e.Seq > last, "got event %d after event %d", e.Seq, last)
		last = max(last, e.Seq)
		got.take(t, e)
	}
	compare.True(t, got.Run.Status.Ended(), "the stream ended after %d events without the end of the run", len(got.Events))
	return got
}

// take notes one event.
func (g *Turn) take(t testing.TB, e core.Event) {
	t.Helper()
	g.Events = append(g.Events, e)
	switch e.Type {
	case core.EventMessageDelta:
		d := EventData[core.DeltaData](t, e)
		compare.Equal(t, "offset of a delta", core.UTF16Len(g.Texts[d.MessageID]), d.OffsetUTF16)
		g.Texts[d.MessageID] += d.Text
		g.Deltas++
	case core.EventMessageDiscarded:
		delete(g.Texts, EventData[core.DiscardedData](t, e).MessageID)
	case core.EventMessageCreated:
		m := EventData[core.MessageData](t, e).Message
		g.Messages = append(g.Messages, m)
		switch m.Role {
		case core.RoleUser:
			g.Question = m
		case core.RoleAssistant:
			g.Answer = m
			g.compareDeltas(t, m)
		}
	case core.EventRunStarted, core.EventRunSucceeded, core.EventRunFailed, core.EventRunCanceled:
		g.Run = EventData[core.RunData](t, e).Run
	}
}

// compareDeltas compares an answer with what came of it before it was stored.
func (g *Turn) compareDeltas(t testing.TB, m core.Message) {
	t.Helper()
	text := g.Texts[m.ID]
	if text == "" {
		return
	}
	g.Streamed++
	compare.Equal(t, fmt.Sprintf("message #%d: deltas", m.Seq), m.Content, text)
}

// sender is a *client.Client, and what embeds one.
type sender interface {
	Do(ctx context.Context, r client.Request) (*http.Response, error)
	StartRun(ctx context.Context, op ops.Operation, in any) iter.Seq2[core.Event, error]
}

// sending returns the operation that sends the message, or a new version of the one that it edits.
func sending(m core.SendMessage) (ops.Operation, any) {
	in := ops.NewMessage{
		InSession: ops.InSession{SessionID: m.SessionID}, UserID: m.User, After: m.After, Content: m.Content, ClientMessageID: m.ClientMessageID,
		Model: m.Model, Multitask: m.Multitask, Source: m.Source, Author: m.Author, Metadata: m.Metadata, Options: m.Options,
	}
	for _, p := range m.Parts {
		in.Parts = append(in.Parts, ops.FilePart{Type: p.Type, BlobID: p.BlobID, Name: p.Name})
	}
	if m.Webhook != nil {
		in.Webhook = &ops.NewWebhook{URL: string(m.Webhook.URL), Secret: m.Webhook.Secret}
	}
	if m.Edits != "" {
		return ops.EditMessage.Operation, ops.EditedMessage{NewMessage: in, MessageID: m.Edits}
	}
	return ops.SendMessage.Operation, in
}

// Send sends a message and yields the events of its run.
func Send(ctx context.Context, c sender, m core.SendMessage) iter.Seq2[core.Event, error] {
	op, in := sending(m)
	return c.StartRun(ctx, op, in)
}

// SendAndWait sends a message and returns its run when it has ended.
func SendAndWait(ctx context.Context, c sender, m core.SendMessage) (answer ops.RunAnswer, err error) {
	return post(ctx, c, client.NewRequest(sending(m)))
}

// SendAsync sends a message and returns its run immediately.
func SendAsync(ctx context.Context, c sender, m core.SendMessage) (core.Run, error) {
	r := client.NewRequest(sending(m))
	r.Header["Prefer"] = "respond-async"
	answer, err := post(ctx, c, r)
	return answer.Run, err
}

func post(ctx context.Context, c sender, r client.Request) (answer ops.RunAnswer, err error) {
	response, err := c.Do(ctx, r)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	return answer, json.NewDecoder(response.Body).Decode(&answer)
}

// SendMessage sends a message, reads the stream of its run, and wants it to succeed.
func SendMessage(t testing.TB, c *client.Client, m core.SendMessage) Turn {
	t.Helper()
	got := ReadTurn(t, Send(t.Context(), c, m))
	if got.Run.Status != core.RunSucceeded {
		t.Fatalf("message %.60q: got the run %s (%+v), want it succeeded", m.Content, got.Run.Status, got.Run.Error)
	}
	return got
}

// ListMessages returns the whole log and checks that its seq has no gap.
func ListMessages(t testing.TB, c *client.Client, id core.SessionID) []core.Message {
	t.Helper()
	var all []core.Message
	in := ops.MessageList{InSession: ops.InSession{SessionID: id}, MessageQuery: core.MessageQuery{PageQuery: core.PageQuery{Limit: core.MaxPageLimit}}}
	for {
		page := must.Get(client.Call(t.Context(), c, ops.ListMessages, in))(t)
		all = append(all, page.Items...)
		if page.NextCursor == nil {
			break
		}
		in.Cursor = *page.NextCursor
	}
	for i, m := range all {
		must.True(t, m.Seq == int64(i+1), "the log has a gap: message %d has the seq %d", i+1, m.Seq)
		compare.True(t, i == 0 || m.ParentID == all[i-1].ID, "message #%d: got the parent %s, want the message before it", m.Seq, m.ParentID)
	}
	return all
}

// InMessage are the fields of operations on a message.
func InMessage(session core.SessionID, message core.MessageID) ops.InMessage {
	return ops.InMessage{InSession: ops.InSession{SessionID: session}, MessageID: message}
}

// AwaitDeletion waits until the deletion has succeeded and returns it.
func AwaitDeletion(ctx context.Context, c client.Caller, id core.DeletionID) (core.Deletion, error) {
	for {
		d, err := client.Call(ctx, c, ops.GetDeletion, ops.InDeletion{DeletionID: id})
		if err != nil || d.Status == core.DeletionSucceeded || !process.Pause(ctx, 20*time.Millisecond) {
			return d, errors.Join(err, context.Cause(ctx))
		}
	}
}

// Writer makes up messages, the same ones for the same number. One goroutine owns it.
type Writer struct {
	Rand *rand.Rand
}

// NewWriter returns the writer of the number.
func NewWriter(number uint64) *Writer { return &Writer{seed.Fixed(number, 0)} }

// Sentences returns so many sentences of about 14 tokens.
func (w *Writer) Sentences(n int) string {
	subjects := []string{"The pump in hall three", "Our second supplier", "The night shift", "A visitor from Graz", "The new controller", "Somebody from accounting"}
	verbs := []string{"reported", "lost", "measured", "replaced", "asked for", "could not explain", "wrote down"}
	objects := []string{"the pressure of valve %d", "%d liters of coolant", "invoice %d", "the reading of sensor %d", "a deviation of %d microns", "order %d"}
	tails := []string{"before the inspection began.", "and nobody noticed until Monday.", "although the manual forbids it.", "because the seal was worn out.", "which is within the tolerance."}
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "%s %s "+chooseWord(w, objects)+" %s ", chooseWord(w, subjects), chooseWord(w, verbs), w.Rand.IntN(9000), chooseWord(w, tails))
	}
	return strings.TrimSpace(b.String())
}

// Chinese returns so many unspaced sentences.
func (w *Writer) Chinese(n int) string {
	starts := []string{"今天早上", "昨天夜里", "检查之前", "星期一"}
	middles := []string{"三号车间的水泵", "新的控制器", "第二家供应商", "夜班的同事"}
	ends := []string{"报告了压力异常。", "没有解释读数的偏差。", "更换了磨损的密封件。", "记录了传感器的数值。"}
	var b strings.Builder
	for range n {
		b.WriteString(chooseWord(w, starts) + chooseWord(w, middles) + chooseWord(w, ends))
	}
	return b.String()
}

func chooseWord(w *Writer, words []string) string { return words[w.Rand.IntN(len(words))] }

// Question is the question of a turn of a long conversation: 60 to 120 tokens, every
// 97th 1,000 to 3,000, every 13th in Chinese; every second asks for a tool.
func (w *Writer) Question(n int) string {
	text := fmt.Sprintf("Turn %d. ", n)
	switch {
	case n%97 == 50:
		text += w.Sentences(70 + w.Rand.IntN(120))
	case n%13 == 7:
		text += w.Chinese(4 + w.Rand.IntN(3))
	default:
		text += w.Sentences(4 + w.Rand.IntN(4))
	}
	if n%2 == 0 {
		text += " Use a tool to check the number."
	}
	return text
}

// IsLong reports whether the long forms of tests run.
func IsLong() bool { return os.Getenv("BOBBIN_TEST_LONG") != "" }

// Patience is how long tests wait for what takes a moment: long enough for a busy machine.
const Patience = 2 * time.Minute

// ChooseSize is how much a test does: CI has the short form, BOBBIN_TEST_LONG=1 the long one
// (make show-…). What is wanted of both is the same.
func ChooseSize[T any](short, full T) T {
	if IsLong() {
		return full
	}
	return short
}

// Table is figures to be logged under a title, aligned.
type Table struct {
	title string
	rows  [][]any
}

// NewTable returns a table without rows.
func NewTable(format string, args ...any) *Table { return &Table{title: fmt.Sprintf(format, args...)} }

// AddRow adds a line: what was measured, and its values.
func (tb *Table) AddRow(cells ...any) { tb.rows = append(tb.rows, cells) }

// Log prints the table.
func (tb *Table) Log(t testing.TB) {
	t.Helper()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, row := range tb.rows {
		fmt.Fprint(w, "  ")
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, cell)
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		t.Error(err)
	}
	t.Logf("\n%s\n%s", tb.title, b.String())
}

// PauseBriefly is for loops that ask until something has happened: asking without a pause
// keeps it from happening.
func PauseBriefly(t testing.TB) { process.Pause(t.Context(), 20*time.Millisecond) }
