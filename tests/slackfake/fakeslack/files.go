package fakeslack

import (
	"bytes"
	"mime"
	"net/http"
	"path"
	"strings"
)

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
