package models

import (
	"time"

	"bobbin/app/core"
)

// BlobContent is a row of blob_contents: the bytes of uploads, once for each owner.
type BlobContent struct {
	Owner     string    `gorm:"primaryKey"`
	Sha256    string    `gorm:"primaryKey"` // of Data, in hex
	Size      int64     // bytes, with the text of a document
	CreatedAt time.Time `gorm:"autoCreateTime:false"`
	Data      []byte
}

// BlobText is a row of blob_texts: the text extracted from a document, once for each
// content.
type BlobText struct {
	Owner      string `gorm:"primaryKey"`
	Sha256     string `gorm:"primaryKey"` // of the content, in hex
	Pages      int
	BlankPages int
	CreatedAt  time.Time `gorm:"autoCreateTime:false"`
	Text       string
}

// Blob is a row of blobs: an image or a file that messages can refer to. Its
// content is the BlobContent of the same owner and hash.
type Blob struct {
	ID         string `gorm:"primaryKey"`
	Owner      string
	UserID     string
	SessionID  Ref
	Sha256     string
	MediaType  string
	Name       string
	Size       int64 // bytes
	Width      int
	Height     int
	TokenCount int
	CreatedAt  time.Time `gorm:"autoCreateTime:false"`
	UploadedAt time.Time

	Pages      int
	BlankPages int
	Extracted  bool // there is a BlobText of the same owner and hash

	Unreferenced bool // candidate for a sweep: probably no message refers to it
}

// BlobFrom returns the row of a newly uploaded blob.
func BlobFrom(b core.Blob) Blob {
	return Blob{
		ID: string(b.ID), Owner: b.Owner, UserID: b.UserID, SessionID: Ref(b.SessionID), Sha256: b.SHA256, MediaType: b.MediaType,
		Name: b.Name, Size: b.Size, Width: b.Width, Height: b.Height, TokenCount: b.Tokens, CreatedAt: b.CreatedAt, UploadedAt: b.CreatedAt,
		Pages: b.Pages, BlankPages: b.Blank, Extracted: b.Extracted, Unreferenced: true,
	}
}

// Core returns the blob of the row.
func (r Blob) Core() core.Blob {
	return core.Blob{
		ID: core.BlobID(r.ID), Owner: r.Owner, UserID: r.UserID, SessionID: core.SessionID(r.SessionID), SHA256: r.Sha256, MediaType: r.MediaType,
		Name: r.Name, Size: r.Size, Width: r.Width, Height: r.Height, Tokens: r.TokenCount, CreatedAt: toUTC(r.CreatedAt),
		Pages: r.Pages, Blank: r.BlankPages, Extracted: r.Extracted,
	}
}

// BlobTotal is a row of blob_totals: the size of the uploads of an owner, or of one of the
// owner's users.
type BlobTotal struct {
	Owner  string `gorm:"primaryKey"`
	ByUser bool   `gorm:"primaryKey"`
	UserID string `gorm:"primaryKey"` // empty without ByUser
	Bytes  int64  // each content once for an owner, each file for a user
	Blobs  int64
}

// SigningKey is a row of signing_keys.
type SigningKey struct {
	Purpose   string    `gorm:"primaryKey"`
	CreatedAt time.Time `gorm:"autoCreateTime:false"`
	Secret    []byte
}

// BlobReference is a row of blob_references: a message that has the blob among its
// parts. The message may not be in the log yet.
type BlobReference struct {
	MessageID string `gorm:"primaryKey"`
	BlobID    string `gorm:"primaryKey"`
	SessionID string
	Owner     string
}
