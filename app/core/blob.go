package core

import (
	"fmt"
	"strings"
	"time"
)

// The types of parts.
const (
	PartText       = "text"
	PartImage      = "image"
	PartFile       = "file"
	PartReasoning  = "reasoning"
	PartCompaction = "compaction" // a provider's own summary, of a prompt only: no message of a log has one
)

// Blob is an image or a file that was uploaded. Its content never changes.
type Blob struct {
	ID        BlobID    `json:"id" gorm:"primaryKey"`
	Owner     string    `json:"-"`
	UserID    string    `json:"user_id,omitempty"`
	SessionID SessionID `json:"session_id,omitempty" gorm:"serializer:ref"` // for which it was uploaded; empty = none, or several
	MediaType string    `json:"media_type" doc:"Detected from the content." example:"image/png"`
	Name      string    `json:"name"` // cleaned: no path, nothing that cannot be shown
	Size      int64     `json:"size" doc:"Bytes."`
	SHA256    string    `json:"sha256" pattern:"^[0-9a-f]{64}$"` // of the content, in hex
	Width     int       `json:"width,omitempty"`                 // of an image, in pixels
	Height    int       `json:"height,omitempty"`
	Pages     int       `json:"pages,omitempty" doc:"Of a document: its pages or slides, of which at most 10,000 are read and counted."`
	Blank     int       `json:"pages_without_text,omitempty" doc:"Scanned or drawn pages. Models see their content only if they get the PDF as a file." gorm:"column:blank_pages"`
	Tokens    int       `json:"token_count,omitempty" doc:"Tokens of the text that models get." gorm:"column:token_count"`
	Extracted bool      `json:"extracted,omitempty" doc:"Models get the text extracted from the document."`
	CreatedAt time.Time `json:"created_at" gorm:"autoCreateTime:false"`
}

// DocumentText is what models are sent of a document: of a PDF, for example.
type DocumentText struct {
	Text  string // with what must be known of it, such as how many pages have none
	Pages int    // pages or slides; 0 = there are none
	Blank int    // of these: without text
}

// WebPage is the readable text of a web page.
type WebPage struct {
	Title     string // one line; empty = none
	Text      string // Markdown
	HasHidden bool   // text was left out that the page hides from its readers
	Cut       bool   // the page has more text
}

// BlobContent is the content of a file, and its text if it is a document.
type BlobContent struct {
	Data []byte
	Text DocumentText
}

// BlobRoom is how many bytes of blobs there may be.
type BlobRoom struct {
	Owner int64 // of the owner, the same content counted once
	User  int64 // of the user; 0 = no limit
}

// Part returns the part of a message that the blob is; its tokens are still to be
// counted.
func (b Blob) Part() Part {
	p := Part{
		Type: PartFile, BlobID: b.ID, MediaType: b.MediaType, Name: b.Name, Size: b.Size, Width: b.Width, Height: b.Height,
		Pages: b.Pages, Blank: b.Blank, Extracted: b.Extracted,
	}
	if strings.HasPrefix(b.MediaType, "image/") {
		p.Type = PartImage
	}
	return p
}

// BlobQuery asks for a page of files.
type BlobQuery struct {
	SessionID SessionID `query:"session_id" doc:"Only files of the session's messages or uploaded for the session."`
	UserID    string    `query:"user_id" max:"200" doc:"Only data of this user; other users' data returns 404."` // the store takes it from the scope
	PageQuery
}

// BlobLink is an address at which a browser gets a file without a key, for a while.
type BlobLink struct {
	URL       string    `json:"url" doc:"Path and query on this server."`
	ExpiresAt time.Time `json:"expires_at"`
}

// Upload is a file on its way in.
type Upload struct {
	SessionID SessionID // the session that it is for; empty = none yet
	User      string    // the user that it belongs to; empty = the session's
	Name      string    // as the caller calls it
	Data      []byte
}

// SweptBlobs says what a sweep removed.
type SweptBlobs struct {
	Blobs int
	Bytes int64 // of the contents that nobody else had
}

// Attached reports whether the part is an image or a file.
func (p Part) Attached() bool { return p.Type == PartImage || p.Type == PartFile }

// Describe returns in a few words what an image or a file is, such as
// image "cat.png", image/png, 640×480, 82 KB.
func (p Part) Describe() string {
	words := []string{p.Type}
	if p.Name != "" {
		words[0] += fmt.Sprintf(" %q", p.Name)
	}
	if p.MediaType != "" {
		words = append(words, p.MediaType)
	}
	if p.Width > 0 && p.Height > 0 {
		words = append(words, fmt.Sprintf("%d×%d", p.Width, p.Height))
	}
	if p.Pages > 0 {
		words = append(words, fmt.Sprintf("%d pages", p.Pages))
	}
	if p.Size > 0 {
		words = append(words, ByteSize(p.Size))
	}
	return strings.Join(words, ", ")
}

// ByteSize returns a number of bytes as people write it: 82 KB, 1.4 MB.
func ByteSize(n int64) string {
	const kilo = 1000
	switch {
	case n < kilo:
		return fmt.Sprintf("%d bytes", n)
	case n < kilo*kilo:
		return fmt.Sprintf("%d KB", (n+kilo/2)/kilo)
	default:
		return fmt.Sprintf("%.1f MB", float64(n)/(kilo*kilo))
	}
}
