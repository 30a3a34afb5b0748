package fakeslack

import (
	"bytes"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
)

func conversationsInfo(c *call) (reply, error) {
	channel, err := c.findChannel("channel")
	if err != nil {
		return nil, err
	}
	return reply{"channel": channel.channelInfo()}, nil
}

// channelInfo is a conversation as the Web API has it.
func (ch *Channel) channelInfo() reply {
	r := reply{"id": ch.ID, "is_channel": ch.Kind == "channel", "is_group": ch.Kind == "group", "is_im": ch.Kind == "im", "is_mpim": ch.Kind == "mpim",
		"is_private": ch.Kind != "channel", "is_archived": false, "is_member": ch.Kind != "im"}
	if ch.Kind == "im" {
		r["user"] = ch.User
	} else {
		r["name"] = ch.Name
	}
	return r
}

// conversationsReplies returns a thread with its root, oldest first.
func conversationsReplies(c *call) (reply, error) {
	channel, err := c.findChannel("channel")
	if err != nil {
		return nil, err
	}
	at := channel.findMessage(c.args.text("ts"))
	if at == nil {
		return nil, failure{code: "thread_not_found"}
	}
	return c.listPage(slices.DeleteFunc(slices.Clone(channel.messages), func(m *Message) bool { return m.threadRoot() != at.threadRoot() }))
}

// listPage returns the part of a list that oldest, latest, cursor and limit select. The cursor
// is the place in the list.
func (c *call) listPage(list []*Message) (reply, error) {
	oldest, latest, inclusive := c.args.text("oldest"), c.args.text("latest"), c.args.flag("inclusive")
	list = slices.DeleteFunc(list, func(m *Message) bool {
		return oldest != "" && oldest != "0" && (m.TS < oldest || m.TS == oldest && !inclusive) ||
			latest != "" && (m.TS > latest || m.TS == latest && !inclusive)
	})
	start := 0
	if cursor := c.args.text("cursor"); cursor != "" {
		var err error
		if start, err = strconv.Atoi(cursor); err != nil || start < 0 || start > len(list) {
			return nil, failure{code: "invalid_cursor"}
		}
	}
	end := min(len(list), start+min(c.args.number("limit", 100), c.s.opts.PageLimit))
	next := ""
	if end < len(list) {
		next = strconv.Itoa(end)
	}
	messages := copyMessages(list[start:end])
	if !c.args.flag("include_all_metadata") {
		for i := range messages {
			messages[i].Metadata = nil
		}
	}
	return reply{"messages": messages, "has_more": next != "", "response_metadata": reply{"next_cursor": next}}, nil
}

// threadKey is a thread of a workspace.
type threadKey struct{ team, channel, ts string }

// SessionStatus returns the status of the agent session of a thread: active, processing,
// suspended or closed; "" without one.
func (w *Workspace) SessionStatus(channel, ts string) string {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return w.server.sessions[threadKey{w.ID, channel, ts}]
}

// sessionsSetStatus moves an agent session to a status. One that is not there is created.
func sessionsSetStatus(c *call) (reply, error) {
	channel, err := c.findChannel("channel_id")
	if err != nil {
		return nil, err
	}
	ts, status := c.args.text("thread_ts"), c.args.text("status")
	if ts != "" && channel.findMessage(ts) == nil {
		return nil, failure{code: "thread_not_found"}
	}
	if !slices.Contains(strings.Fields("active processing suspended closed"), status) {
		return nil, failure{code: "invalid_status"}
	}
	c.s.sessions[threadKey{c.ws.ID, channel.ID, ts}] = status
	return reply{"status": status, "agent_status": status}, nil
}

// File is an uploaded file as messages and files.info have it.
type File struct {
	ID          string `json:"id"`
	Created     int64  `json:"created"`
	Name        string `json:"name"`
	Title       string `json:"title"`
	Mimetype    string `json:"mimetype"`
	Filetype    string `json:"filetype"`
	Mode        string `json:"mode"`
	User        string `json:"user"`
	Size        int    `json:"size"`
	URLPrivate  string `json:"url_private"`
	URLDownload string `json:"url_private_download"`

	content []byte
}

// addFile stores a file that is not in any message yet.
func (w *Workspace) addFile(user, name string, content []byte) *File {
	f := &File{ID: w.server.newID("F"), Created: w.server.opts.Now().Unix(), Name: name, Title: name, Mode: "hosted", User: user}
	kind, _, _ := mime.ParseMediaType(mime.TypeByExtension(path.Ext(name)))
	f.Mimetype, f.Filetype = firstOf(kind, "application/octet-stream"), strings.TrimPrefix(path.Ext(name), ".")
	f.URLDownload = w.server.URL + "/files-pri/" + f.ID + "/download/" + path.Base(name)
	f.URLPrivate = f.URLDownload
	f.content, f.Size = content, len(content)
	w.files = append(w.files, f)
	return f
}

func (w *Workspace) findFile(id string) *File {
	return findFirst(w.files, func(f *File) bool { return f.ID == id })
}

func filesInfo(c *call) (reply, error) {
	f := c.ws.findFile(c.args.text("file"))
	if f == nil {
		return nil, failure{code: "file_not_found"}
	}
	return reply{"file": f}, nil
}

// serveDownload sends a file to who shows a token that may read it. Others are redirected
// to the sign-in page, which is HTML with status 200. It takes mu.
func (s *Server) serveDownload(w http.ResponseWriter, r *http.Request) {
	if f := s.readableFile(bearerToken(r), r.PathValue("id")); f != nil {
		w.Header().Set("Content-Type", f.Mimetype)
		http.ServeContent(w, r, "", s.opts.Now(), bytes.NewReader(f.content))
		return
	}
	http.Redirect(w, r, "/signin?redir="+r.URL.EscapedPath(), http.StatusFound)
}

// readableFile returns the file if the token may read it. It takes mu.
func (s *Server) readableFile(value, id string) *File {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.checkToken(value)
	if err != nil || t.user == nil {
		return nil
	}
	f := t.user.ws.findFile(id)
	if f == nil {
		return nil
	}
	snapshot := *f
	return &snapshot
}
