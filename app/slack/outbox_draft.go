package slack

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"bobbin/app/core"
)

// How a message is shown while it is being written.
const (
	streamTime = 240 * time.Second // of one stream: Slack ends it after five minutes
	longLine   = 200               // bytes of a line that is shown before it ends
)

// draft is what the thread shows of a message that is being written: streams, or nothing. Offsets
// are bytes of its text.
type draft struct {
	message core.MessageID
	raw     strings.Builder
	post    core.SlackPost // of the stream that is open; without a ts = none is
	part    int
	from    int // where the part begins
	sent    int // up to here the text is in Slack
	started time.Time
	broken  bool // nothing is shown until the message is complete
	rated   bool // the part ends a complete answer: people may rate it
	tasks   []slack.StreamChunk
}

func (d *draft) text() string { return neutralizeMentions(d.raw.String()) }

// addDelta extends the draft by a piece of the message.
func (f *follower) addDelta(ctx context.Context, d core.DeltaData) error {
	if f.draft == nil || f.draft.message != d.MessageID {
		if err := f.closeDraft(ctx); err != nil {
			return err
		}
		f.draft = &draft{message: d.MessageID, started: time.Now()}
	}
	if n := f.draft.raw.Len(); d.Offset <= n && d.Offset+len(d.Text) > n {
		f.draft.raw.WriteString(d.From(n).Text)
	}
	return nil
}

// addTask shows the state of a tool call in the stream of the message that asks for it.
func (f *follower) addTask(call, name string, status slack.TaskCardStatus) {
	if f.draft == nil && f.toolMessage != "" {
		f.draft, f.toolMessage = &draft{message: f.toolMessage, started: time.Now()}, ""
	}
	if name != "" {
		f.tools[call] = name
	}
	if f.draft == nil {
		return
	}
	task := slack.NewTaskUpdateChunk(call, core.Clip(cmp.Or(f.tools[call], "tool"), maxName))
	task.Status = status
	f.draft.tasks = append(f.draft.tasks, task)
}

// flushDraft shows what is new of the draft, unless the channel has more urgent posts.
func (f *follower) flushDraft(ctx context.Context) error {
	d := f.draft
	_, noStreams := f.noStreams.Load(f.Team)
	canStream := !noStreams && (f.asker.user != "" || strings.HasPrefix(f.Channel, "D"))
	if d == nil || d.broken || !canStream || time.Since(d.started) < tickEvery || !f.pace.isFree(channelKey(f.SlackThread)) {
		return nil
	}
	for {
		text := d.text()
		end := strings.LastIndexByte(text, '\n') + 1
		if i := strings.LastIndexByte(text, ' ') + 1; i > end+longLine {
			end = i
		}
		spans := splitText(text, d.from)
		full := len(spans) > 1 // the part
		if full {
			end = spans[0].to
		}
		end = max(end, d.sent)
		rotate := full || d.post.TS != "" && time.Since(d.started) > streamTime && end > d.sent
		if end <= d.sent && !rotate && len(d.tasks) == 0 {
			return nil
		}
		show := f.appendStream
		if d.post.TS == "" {
			show = f.startStream
		}
		if err := show(ctx, text, end, rotate); err != nil || !rotate || d.broken {
			return err
		}
	}
}

func (f *follower) startStream(ctx context.Context, text string, end int, last bool) error {
	d := f.draft
	p := f.newPost(core.SlackPostMessage, string(d.message), d.part)
	p.From, p.To, p.Streaming = d.from, end, true
	chunks := d.chunks(text, end)
	p, err := f.postWith(ctx, p, streamHash, func(ctx context.Context, api *client) (string, error) {
		_, ts, err := api.StartStreamContext(ctx, f.Channel, slack.MsgOptionTS(f.Thread), slack.MsgOptionChunks(chunks...),
			slack.MsgOptionRecipientTeamID(cmp.Or(f.asker.team, f.Team)), slack.MsgOptionRecipientUserID(f.asker.user), slack.MsgOptionTaskDisplayMode(slack.TaskDisplayModeTimeline))
		if isUnsupported(err) {
			f.noStreams.Store(f.Team, true)
		}
		return ts, err
	})
	if err != nil {
		return err
	}
	d.post, d.sent, d.tasks = p, end, nil
	switch {
	case p.State != core.SlackPostSent:
		d.broken = true
		return nil
	case p.Hash != streamHash: // found in the thread: it is not known what it says
		return f.breakStream(ctx)
	case last:
		return f.stopStream(ctx, text)
	}
	return nil
}

// streamHash stands for the content of a stream.
const streamHash = "stream"

// isNoStream reports whether the error says that there are no streams in the workspace, in the thread,
// or for the person.
func isNoStream(err error) bool {
	return isUnsupported(err) || isAnswer(err, "missing_recipient_team_id", "missing_recipient_user_id", "user_not_found", "channel_type_not_supported")
}

// chunks returns the new text up to end and the new tasks for a stream.
func (d *draft) chunks(text string, end int) []slack.StreamChunk {
	var chunks []slack.StreamChunk
	piece := text[d.sent:end]
	if opening := blockAt(scanLines(text), d.from).opening; d.sent == d.from && opening != "" && piece != "" {
		piece = opening + "\n" + piece
	}
	for piece != "" {
		n := core.UTF16Index(piece, maxPost)
		chunks, piece = append(chunks, slack.NewMarkdownTextChunk(piece[:n])), piece[n:]
	}
	return append(chunks, d.tasks...)
}

// appendStream appends the text up to end, and stops the stream with last.
func (f *follower) appendStream(ctx context.Context, text string, end int, last bool) error {
	d := f.draft
	if chunks := d.chunks(text, end); len(chunks) > 0 {
		err := f.call(ctx, func(ctx context.Context, api *client) error {
			_, _, err := api.AppendStreamContext(ctx, f.Channel, d.post.TS, slack.MsgOptionChunks(chunks...))
			return err
		})
		later, _ := errors.AsType[*laterError](err)
		switch {
		case err == nil:
		case later != nil:
			return err
		case isAnswer(err, "message_not_in_streaming_state"):
			d.rated = false // its end is in the next part
			return f.storeStream(ctx, text, false)
		default:
			return f.breakStream(ctx)
		}
		d.sent, d.tasks = end, nil
	}
	if last {
		return f.stopStream(ctx, text)
	}
	return nil
}

// stopStream ends the stream, whose text is complete.
func (f *follower) stopStream(ctx context.Context, text string) error {
	d := f.draft
	options := []slack.MsgOption{stamp(d.post)}
	if closing := blockAt(scanLines(text), d.sent).closing; closing != "" {
		options = append(options, slack.MsgOptionMarkdownText("\n"+closing))
	}
	if d.rated {
		options = append(options, slack.MsgOptionBlocks(feedbackButtons()))
	}
	err := f.call(ctx, func(ctx context.Context, api *client) error {
		_, _, err := api.StopStreamContext(ctx, f.Channel, d.post.TS, options...)
		return err
	})
	if err := f.changeError(ctx, d.post, err); err != nil {
		return err
	}
	return f.storeStream(ctx, text, err == nil)
}

// storeStream stores that the stream has ended, and what it shows; another part follows. What closing
// it would have added, the end of a code block and buttons, an edit adds if Slack ended it.
func (f *follower) storeStream(ctx context.Context, text string, closed bool) error {
	d := f.draft
	p := d.post
	shown := f.messageContent(core.Message{Role: core.RoleAssistant, OnPath: true, Status: core.MessageComplete}, renderSpan(text, span{d.from, d.sent}), false, d.rated)
	p.Streaming, p.From, p.To = false, d.from, d.sent
	if closed || !d.rated && blockAt(scanLines(text), d.sent).closing == "" {
		p.Hash = shown.hash()
	}
	d.part, d.from, d.post, d.started = d.part+1, d.sent, core.SlackPost{}, time.Now()
	return f.edit(ctx, p, shown)
}

// breakStream ends a stream of which it is not known what it says. The complete message will
// replace it.
func (f *follower) breakStream(ctx context.Context) error {
	f.draft.broken = true
	return f.endStray(ctx, f.draft.post)
}

// endStray ends the stream of a post, if it is one still.
func (f *follower) endStray(ctx context.Context, p core.SlackPost) error {
	err := f.call(ctx, func(ctx context.Context, api *client) error {
		_, _, err := api.StopStreamContext(ctx, p.Channel, p.TS, stamp(p))
		return err
	})
	if err != nil && !isRefused(err) { // a stream that is open cannot be edited
		return newLaterError(err)
	}
	p.Streaming, p.Hash = false, ""
	return f.Posts.Update(context.WithoutCancel(ctx), f.Worker, p)
}

// completeDraft brings the draft of a message to its end. With tool calls the stream stays
// open for their states.
func (f *follower) completeDraft(ctx context.Context, m core.Message) error {
	d := f.draft
	if d == nil || d.message != m.ID {
		return f.closeDraft(ctx)
	}
	text := neutralizeMentions(m.Content)
	if d.broken || d.post.TS == "" || !strings.HasPrefix(text, d.text()) {
		return f.closeDraft(ctx)
	}
	end, last := d.sent, len(m.ToolCalls) == 0
	if spans := splitText(text, d.from); len(spans) > 0 {
		end, last = max(spans[0].to, d.sent), last || len(spans) > 1
	}
	d.rated = last && end == len(text) && isRated(m)
	if err := f.appendStream(ctx, text, end, last); err != nil {
		return err
	}
	if d.post.TS == "" || d.broken {
		f.draft = nil
		return nil
	}
	d.raw.Reset()
	d.raw.WriteString(m.Content)
	return nil
}

// closeDraft ends the stream of the draft, and forgets it.
func (f *follower) closeDraft(ctx context.Context) error {
	if d := f.draft; d != nil && d.post.TS != "" && !d.broken {
		text := d.text()
		var err error
		if d.sent < len(text) { // the stream lacks some of it
			err = f.breakStream(ctx)
		} else {
			err = f.appendStream(ctx, text, len(text), true)
		}
		if err != nil {
			return err
		}
	}
	f.draft = nil
	return nil
}
