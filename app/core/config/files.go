package config

import "regexp"

// Files bound the images and files in messages.
type Files struct {
	Bytes      Bytes    `key:"bytes"`       // of one
	PerMessage int      `key:"per_message"` // of one message
	TotalBytes Bytes    `key:"total_bytes"` // of all that one owner has; the same content counts once
	UserBytes  Bytes    `key:"user_bytes"`  // of all that one end user has
	Types      []string `key:"types"`       // media types such as image/png or text/*
	NativePDF  string   `key:"native_pdf"`  // one of NativePDFs
}

// NativePDFs returns the words that files.native_pdf takes.
func NativePDFs() []string { return []string{"scanned", "always", "never"} }

// officeTypes begins the media types of Word, Excel and PowerPoint.
const officeTypes = "application/vnd.openxmlformats-officedocument."

func defaultFiles() Files {
	return Files{
		Bytes: 20 << 20, PerMessage: 8, TotalBytes: 1 << 30, UserBytes: 100 << 20,
		Types:     []string{"image/png", "image/jpeg", "image/gif", "image/webp", "text/*", "application/json", "application/pdf", officeTypes + "wordprocessingml.document", officeTypes + "spreadsheetml.sheet", officeTypes + "presentationml.presentation"},
		NativePDF: "scanned",
	}
}

// mediaType matches a media type, or all of a family.
var mediaType = regexp.MustCompile(`^[a-z0-9][a-z0-9.+-]*/(\*|[a-z0-9][a-z0-9.+-]*)$`)

func (f Files) validate(found *faults) {
	found.checkKey(f.Bytes >= 1024 && f.Bytes <= 256<<20, "files.bytes", "%s is out of range; use 1KiB to 256MiB", f.Bytes)
	found.checkKey(f.PerMessage >= 1 && f.PerMessage <= 100, "files.per_message", "%d is out of range; use 1 to 100", f.PerMessage)
	found.checkKey(f.TotalBytes >= f.Bytes, "files.total_bytes", "%s is less than files.bytes (%s): no file of that size could be kept", f.TotalBytes, f.Bytes)
	found.checkKey(f.UserBytes >= 1024, "files.user_bytes", "%s is out of range; use 1KiB or more", f.UserBytes)
	oneOf(found, "files.native_pdf", f.NativePDF, NativePDFs())
	for _, t := range f.Types {
		found.checkKey(mediaType.MatchString(t), "files.types", "%q is not a media type; write for example image/png or text/*", t)
	}
}
