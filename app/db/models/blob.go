package models

import "time"

// Blob is a row of blobs: an image or a file that a message refers to.
type Blob struct {
	ID        string `gorm:"primaryKey"`
	Owner     string
	SessionID Ref
	MediaType string
	Name      string
	Size      int64  // bytes
	Sha256    string // of Data, in hex
	Data      []byte
	CreatedAt time.Time `gorm:"autoCreateTime:false"`
}

// TableName is the table's name.
func (Blob) TableName() string { return "blobs" }
