package config

import "regexp"

// Files bound the images and files in messages.
type Files struct {
	Bytes      Bytes    // of one
	PerMessage int      // of one message
	TotalBytes Bytes    // of all that one owner has; the same content counts once
	UserBytes  Bytes    // of all that one end user has
	Types      []string // media types such as image/png or text/*
}

func defaultFiles() Files {
	return Files{
		Bytes: 20 << 20, PerMessage: 8, TotalBytes: 1 << 30, UserBytes: 100 << 20,
		Types: []string{"image/png", "image/jpeg", "image/gif", "image/webp", "text/*", "application/json", "application/pdf"},
	}
}

func files() []setting {
	return []setting{
		{name: "files.bytes", meaning: "largest image or file; a larger one is refused", field: func(c *Config) any { return &c.Files.Bytes }},
		{name: "files.per_message", meaning: "images and files of one message", field: func(c *Config) any { return &c.Files.PerMessage }},
		{name: "files.total_bytes", meaning: "images and files of one owner, the same content counted once", field: func(c *Config) any { return &c.Files.TotalBytes }},
		{name: "files.user_bytes", meaning: "images and files of one end user (`auth.jwt`)", field: func(c *Config) any { return &c.Files.UserBytes }},
		{name: "files.types", meaning: "media types that are taken, such as `image/png` or `text/*`; what a file is follows from its content", field: func(c *Config) any { return &c.Files.Types }},
	}
}

// mediaType matches a media type, or all of a family.
var mediaType = regexp.MustCompile(`^[a-z0-9][a-z0-9.+-]*/(\*|[a-z0-9][a-z0-9.+-]*)$`)

func (f Files) validate(found *faults) {
	found.check(f.Bytes >= 1024 && f.Bytes <= 256<<20, "files.bytes", "%s is out of range; use 1KiB to 256MiB", f.Bytes)
	found.check(f.PerMessage >= 1 && f.PerMessage <= 100, "files.per_message", "%d is out of range; use 1 to 100", f.PerMessage)
	found.check(f.TotalBytes >= f.Bytes, "files.total_bytes", "%s is less than files.bytes (%s): no file of that size could be kept", f.TotalBytes, f.Bytes)
	found.check(f.UserBytes >= 1024, "files.user_bytes", "%s is out of range; use 1KiB or more", f.UserBytes)
	for _, t := range f.Types {
		found.check(mediaType.MatchString(t), "files.types", "%q is not a media type; write for example image/png or text/*", t)
	}
}
