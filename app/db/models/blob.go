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
	core.Blob
	UploadedAt   time.Time
	Unreferenced bool // candidate for a sweep: probably no message refers to it
}

// Core returns the blob of the row.
func (r Blob) Core() core.Blob { return r.Blob }

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
