package config

import "regexp"

// Files bound the images and files in messages.
type Files struct {
	Bytes      Bytes    // of one
	PerMessage int      // of one message
	TotalBytes Bytes    // of all that one owner has; the same content counts once
	UserBytes  Bytes    // of all that one end user has
	Types      []string // media types such as image/png or text/*
	NativePDF  string   // one of NativePDFs
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

func filesKeys() []setting {
	return []setting{
		{name: "files.bytes", meaning: "largest image or file; larger ones are rejected", field: func(c *Config) any { return &c.Files.Bytes }},
		{name: "files.per_message", meaning: "images and files of one message", field: func(c *Config) any { return &c.Files.PerMessage }},
		{name: "files.total_bytes", meaning: "images and files of one owner, the same content counted once", field: func(c *Config) any { return &c.Files.TotalBytes }},
		{name: "files.user_bytes", meaning: "images and files of one end user (`auth.jwt`)", field: func(c *Config) any { return &c.Files.UserBytes }},
		{name: "files.types", meaning: "accepted media types, such as `image/png` or `text/*`; a file's type is determined by its content", field: func(c *Config) any { return &c.Files.Types }},
		{name: "files.native_pdf", meaning: "PDFs of at most 20 pages that models with `documents` get as files, so that they see the pages: `scanned` (those with pages without text), `always` or `never`; a page costs 1,600 tokens in addition to its text. Other PDFs are sent as text", field: func(c *Config) any { return &c.Files.NativePDF }},
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
