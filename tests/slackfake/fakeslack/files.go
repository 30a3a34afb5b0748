package fakeslack

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"
)

// maxUpload is how large an uploaded file may be, in bytes.
const maxUpload = 100 << 20

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

	team    string
	content []byte
	shared  bool
}

// addFile stores a file that is not in any message yet.
func (w *Workspace) addFile(user, name string, content []byte) *File {
	f := &File{ID: w.server.newID("F"), Created: w.server.opts.Now().Unix(), Name: name, Title: name, Mode: "hosted", User: user, team: w.ID}
	kind, _, _ := mime.ParseMediaType(mime.TypeByExtension(path.Ext(name)))
	f.Mimetype, f.Filetype = firstOf(kind, "application/octet-stream"), strings.TrimPrefix(path.Ext(name), ".")
	f.URLDownload = w.server.URL + "/files-pri/" + f.ID + "/download/" + path.Base(name)
	f.URLPrivate = f.URLDownload
	f.setContent(content)
	w.files = append(w.files, f)
	return f
}

func (f *File) setContent(content []byte) { f.content, f.Size = content, len(content) }

func (w *Workspace) findFile(id string) *File {
	return findFirst(w.files, func(f *File) bool { return f.ID == id })
}

// FileContent returns the bytes of a file, nil if there is none.
func (w *Workspace) FileContent(id string) []byte {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	if f := w.findFile(id); f != nil {
		return f.content
	}
	return nil
}

func filesGetUploadURL(c *call) (reply, error) {
	name := c.args.text("filename")
	if name == "" || c.args.number("length", 0) == 0 {
		return nil, failure{code: "invalid_arguments"}
	}
	f := c.ws.addFile(c.token.user.ID, name, nil)
	return reply{"upload_url": c.s.URL + "/upload/v1/" + f.ID, "file_id": f.ID}, nil
}

// serveUpload takes the bytes of a file: the body, or its first part. It takes mu.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxUpload)
	var content []byte
	var err error
	if parts, formErr := r.MultipartReader(); formErr == nil {
		part, partErr := parts.NextPart()
		if err = partErr; err == nil {
			content, err = io.ReadAll(part)
		}
	} else {
		content, err = io.ReadAll(r.Body)
	}
	if err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ws := range s.workspaces {
		if f := ws.findFile(r.PathValue("id")); f != nil && !f.shared {
			f.setContent(content)
			_, _ = io.WriteString(w, "OK")
			return
		}
	}
	http.NotFound(w, r)
}

// filesCompleteUpload shares uploaded files in a message.
func filesCompleteUpload(c *call) (reply, error) {
	var wanted []struct{ ID, Title string }
	if err := c.args.decode("files", &wanted); err != nil {
		return nil, err
	}
	var files []*File
	for _, one := range wanted {
		f := c.ws.findFile(one.ID)
		if f == nil || f.Size == 0 {
			return nil, failure{code: "file_not_found"}
		}
		f.Title = firstOf(one.Title, f.Title)
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil, failure{code: "invalid_arguments"}
	}
	if id := firstOf(c.args.text("channel_id"), c.args.text("channels")); id != "" {
		c.args["channel_id"] = id
		channel, err := c.findChannel("channel_id")
		if err != nil {
			return nil, err
		}
		m := Message{Subtype: "file_share", Text: c.args.text("initial_comment"), ThreadTS: c.args.text("thread_ts"), Files: files}
		if _, err := c.ws.insertMessage(channel, c.token.user, m); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		f.shared = true
	}
	return reply{"files": files}, nil
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
	if err != nil || t.user == nil || !t.hasScope("files:read") {
		return nil
	}
	f := t.user.ws.findFile(id)
	if f == nil {
		return nil
	}
	snapshot := *f
	return &snapshot
}
