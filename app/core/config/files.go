package config

import "regexp"

// Files bound the images and files in messages.
type Files struct {
	Bytes      Bytes    `key:"bytes" range:"1KiB..256MiB"` // of one
	PerMessage int      `key:"per_message" range:"1..100"` // of one message
	TotalBytes Bytes    `key:"total_bytes"`                // of all that one owner has; the same content counts once
	UserBytes  Bytes    `key:"user_bytes" range:"1KiB.."`  // of all that one end user has
	Types      []string `key:"types"`                      // media types such as image/png or text/*
	NativePDF  string   `key:"native_pdf" words:"scanned,always,never"`
}

// officeTypes begins the media types of Word, Excel and PowerPoint.
const officeTypes = "application/vnd.openxmlformats-officedocument."

// mediaType matches a media type, or all of a family.
var mediaType = regexp.MustCompile(`^[a-z0-9][a-z0-9.+-]*/(\*|[a-z0-9][a-z0-9.+-]*)$`)

func (f Files) validate(found *faults) {
	found.checkKey(f.TotalBytes >= f.Bytes, "files.total_bytes", "%s is less than files.bytes (%s): no file of that size could be kept", f.TotalBytes, f.Bytes)
	for _, t := range f.Types {
		found.checkKey(mediaType.MatchString(t), "files.types", "%q is not a media type; write for example image/png or text/*", t)
	}
}
