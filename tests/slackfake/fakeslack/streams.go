package fakeslack

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Stream is the state of a streamed message.
type Stream struct {
	Open    bool
	Tasks   []Task
	started time.Time
}

// Task is a step that a stream shows, such as a tool call.
type Task struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Status string `json:"status"` // pending, in_progress, complete or error
}

// chunk is a piece of a stream.
type chunk struct {
	Type   string            `json:"type"`
	Text   string            `json:"text"`
	Blocks []json.RawMessage `json:"blocks"`
	Task
}

// isStreaming reports whether the message can grow. A stream ends by itself when its time is
// up.
func (w *Workspace) isStreaming(m *Message) bool {
	return m.Stream != nil && m.Stream.Open && w.server.opts.Now().Sub(m.Stream.started) < streamLife
}

func startStream(c *call) (reply, error) {
	channel, err := c.findChannel("channel")
	if err != nil {
		return nil, err
	}
	m := Message{ThreadTS: c.args.text("thread_ts"), Stream: &Stream{Open: true, started: c.s.opts.Now()}}
	switch {
	case channel.Kind == "im" && m.ThreadTS == "":
		return nil, failure{code: "invalid_thread_ts"}
	case channel.Kind != "im" && c.args.text("recipient_team_id") == "":
		return nil, failure{code: "missing_recipient_team_id"}
	case channel.Kind != "im" && c.args.text("recipient_user_id") == "":
		return nil, failure{code: "missing_recipient_user_id"}
	}
	chunks, err := c.readChunks()
	if err == nil {
		err = m.addChunks(chunks)
	}
	if err != nil {
		return nil, err
	}
	stored, err := c.ws.insertMessage(channel, c.token.user, m)
	if err != nil {
		return nil, err
	}
	return reply{"channel": channel.ID, "ts": stored.TS}, nil
}

// openStream returns the message of a stream that can grow.
func (c *call) openStream() (*Channel, *Message, error) {
	channel, m, err := c.ownMessage("message_not_owned_by_app")
	if err == nil && !c.ws.isStreaming(m) {
		err = failure{code: "message_not_in_streaming_state"}
	}
	return channel, m, err
}

func appendStream(c *call) (reply, error) {
	channel, m, err := c.openStream()
	if err != nil {
		return nil, err
	}
	chunks, err := c.readChunks()
	if err != nil {
		return nil, err
	}
	if len(chunks) == 0 {
		return nil, failure{code: "no_text"}
	}
	return c.growStream(channel, m, chunks, func(*Message) {})
}

func stopStream(c *call) (reply, error) {
	channel, m, err := c.openStream()
	if err != nil {
		return nil, err
	}
	chunks, err := c.readChunks()
	if err != nil {
		return nil, err
	}
	if blocks := c.args.raw("blocks"); len(blocks) > 0 {
		var list []json.RawMessage
		if json.Unmarshal(blocks, &list) != nil {
			return nil, failure{code: "invalid_blocks_format"}
		}
		chunks = append(chunks, chunk{Type: "blocks", Blocks: list})
	}
	metadata, err := checkMetadata(c.args.raw("metadata"))
	if err != nil {
		return nil, err
	}
	answer, err := c.growStream(channel, m, chunks, func(m *Message) {
		m.Stream.Open = false
		if len(metadata) > 0 {
			m.Metadata = metadata
		}
	})
	if err != nil {
		return nil, err
	}
	answer["message"] = m.clone()
	return answer, nil
}

// growStream appends to a stream, all of it or nothing.
func (c *call) growStream(channel *Channel, m *Message, chunks []chunk, finish func(*Message)) (reply, error) {
	grown := m.clone()
	if err := grown.addChunks(chunks); err != nil {
		return nil, err
	}
	c.ws.changeMessage(channel, m, "", func(m *Message) {
		*m = grown
		finish(m)
	})
	return reply{"channel": channel.ID, "ts": m.TS}, nil
}

// readChunks reads what is to be appended.
func (c *call) readChunks() ([]chunk, error) {
	var chunks []chunk
	if err := c.args.decode("chunks", &chunks); err != nil {
		return nil, failure{code: "invalid_chunks"}
	}
	if text := c.args.text("markdown_text"); text != "" {
		chunks = append([]chunk{{Type: "markdown_text", Text: text}}, chunks...)
	}
	return chunks, nil
}

// addChunks appends chunks to a streamed message.
func (m *Message) addChunks(chunks []chunk) error {
	for _, part := range chunks {
		switch part.Type {
		case "markdown_text":
			if countChars(part.Text) > maxMarkdown {
				return failure{code: "msg_too_long"}
			}
			m.Text += part.Text
		case "task_update":
			if err := m.Stream.updateTask(part.Task); err != nil {
				return err
			}
		case "blocks":
			if err := m.appendBlocks(part.Blocks); err != nil {
				return err
			}
		default:
			return failure{code: "invalid_chunks", messages: []string{"[ERROR] unsupported type: " + part.Type}}
		}
	}
	return nil
}

func (st *Stream) updateTask(task Task) error {
	if !slices.Contains(strings.Fields("pending in_progress complete error"), task.Status) || task.ID == "" {
		return failure{code: "invalid_chunks", messages: []string{"[ERROR] a task needs an id and a status"}}
	}
	i := slices.IndexFunc(st.Tasks, func(t Task) bool { return t.ID == task.ID })
	if i < 0 {
		st.Tasks = append(st.Tasks, task)
		return nil
	}
	task.Title = firstOf(task.Title, st.Tasks[i].Title)
	st.Tasks[i] = task
	return nil
}

// appendBlocks adds blocks behind the text of a stream.
func (m *Message) appendBlocks(more []json.RawMessage) error {
	var blocks []json.RawMessage
	_ = json.Unmarshal(m.Blocks, &blocks) // none yet
	all, err := json.Marshal(append(blocks, more...))
	if err == nil {
		err = CheckBlocks(all)
	}
	if err != nil {
		return err
	}
	m.Blocks = all
	return nil
}
