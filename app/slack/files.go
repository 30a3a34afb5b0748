package slack

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"bobbin/app/core"
)

// How files are downloaded.
const (
	fileTime     = 30 * time.Second
	maxFile      = 25 << 20
	maxRedirects = 3
	maxFileTries = 5 // then the message goes without it
)

// isSlackHost reports whether Slack serves files and its API there.
func isSlackHost(host string) bool {
	host = strings.ToLower(host)
	return slices.ContainsFunc([]string{"slack.com", "slack-gov.com", "slack-files.com"}, func(domain string) bool { return host == domain || strings.HasSuffix(host, "."+domain) })
}

// trustedURL reports whether the address is Slack's, or that of the Web API of the settings.
func (s *Service) trustedURL(u *url.URL) bool {
	if u.User != nil {
		return false
	}
	if s.apiHost != "" {
		return u.Host == s.apiHost
	}
	return u.Scheme == "https" && (u.Port() == "" || u.Port() == "443") && isSlackHost(u.Hostname())
}

// fetchFiles stores the files of a message. Notes say which ones were not accepted, and why.
func (s *workspace) fetchFiles(ctx context.Context, m incoming, session core.SessionID) (parts []core.Part, notes []string, err error) {
	maxBytes, maxFiles := s.Files.MaxBytes()
	for i, f := range m.allFiles() {
		name := core.CleanText(core.Clip(f.Name, 200))
		if i >= maxFiles {
			return parts, append(notes, fmt.Sprintf("Only the first %d files were accepted.", maxFiles)), nil
		}
		data, err := s.download(ctx, f, min(maxBytes, maxFile))
		if err == nil {
			var blob core.Blob
			if blob, err = s.Files.Upload(ctx, s.tenant(), core.Upload{SessionID: session, User: m.person.ID, Name: f.Name, Data: data}); err == nil {
				parts = append(parts, core.Part{Type: blob.Part().Type, BlobID: blob.ID})
			}
		}
		switch {
		case isFinal(err):
			notes = append(notes, fmt.Sprintf("The file %s was not accepted: %s", name, core.ShownMessage(err, "")))
		case err != nil && m.attempt < maxFileTries:
			return nil, nil, fmt.Errorf("file of Slack: %w", err)
		case err != nil:
			notes = append(notes, fmt.Sprintf("The file %s could not be read.", name))
		}
	}
	return parts, notes, nil
}

// download returns the content of a file. The token is sent to Slack's hosts alone.
func (s *workspace) download(ctx context.Context, f file, limit int64) ([]byte, error) {
	if f.Size > limit {
		return nil, core.Errorf(core.ErrTooLarge, "it has %s, at most %s are allowed", core.ByteSize(f.Size), core.ByteSize(limit))
	}
	if f.Access == "check_file_info" { // of a shared channel: its address must be asked for
		info, _, _, err := s.api.GetFileInfoContext(ctx, f.ID, 0, 0)
		if err != nil {
			return nil, core.Errorf(core.ErrUnprocessable, "Slack does not give it (%s)", core.Clip(err.Error(), 100))
		}
		f.Download, f.Private = info.URLPrivateDownload, info.URLPrivate
	}
	address, err := url.Parse(cmp.Or(f.Download, f.Private))
	if err != nil || !s.trustedURL(address) {
		return nil, core.Errorf(core.ErrUnprocessable, "its address is not one of Slack")
	}
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+s.api.token)
	response, err := s.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests:
		return nil, fmt.Errorf("status %d", response.StatusCode)
	case response.StatusCode != http.StatusOK:
		return nil, core.Errorf(core.ErrUnprocessable, "Slack does not give it (status %d)", response.StatusCode)
	case kind == "text/html" && !strings.HasPrefix(f.Mimetype, "text/html"): // Slack's login page
		return nil, core.Errorf(core.ErrUnprocessable, "Slack does not give it: the app lacks the scope files:read")
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, core.Errorf(core.ErrTooLarge, "at most %s are allowed", core.ByteSize(limit))
	}
	return data, err
}
