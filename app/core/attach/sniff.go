package attach

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"image"
	_ "image/gif" // registers the format
	_ "image/jpeg"
	_ "image/png"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"bobbin/app/core"
)

// MaxSide is the longest side of an image, in pixels: a small file can hold an
// image that fills the memory of whoever decodes it.
const MaxSide = 12_000

// Found is what a file is.
type Found struct {
	MediaType string // without parameters; text is UTF-8
	Document  string // the kind of document whose text can be read out of it; empty = none
	Width     int    // of an image, in pixels
	Height    int
}

// Sniff says what the file is by its content; of the name only the ending counts,
// and only among kinds of text. Markup is plain text: nothing that a browser would
// run keeps a type of its own. An empty file, an image that cannot be read or is
// too large, and text that is not UTF-8 are core.ErrInvalid.
func Sniff(data []byte, name string) (Found, error) {
	if len(data) == 0 {
		return Found{}, refuseFile("it is empty")
	}
	media, _, err := mime.ParseMediaType(http.DetectContentType(data))
	if err != nil {
		media = "application/octet-stream"
	}
	switch {
	case strings.HasPrefix(media, "image/"):
		return sniffImage(data, media)
	case strings.HasPrefix(media, "text/"):
		return sniffText(data, name, media)
	case media == PDF:
		return Found{MediaType: media, Document: media}, nil
	case media == "application/zip":
		return sniffOffice(data)
	case bytes.HasPrefix(data, []byte(compoundFile)):
		return Found{}, refuseFile("it is an Office file of an old format, or one with a password; save it as .docx, .xlsx or .pptx without a password and upload that")
	default:
		return Found{MediaType: media}, nil
	}
}

// The kinds of documents.
const (
	PDF        = "application/pdf"
	Word       = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	Excel      = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	PowerPoint = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
	HTML       = "text/html"
)

// compoundFile begins files of Office up to 2003, and encrypted ones of today.
const compoundFile = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

// sniffOffice tells office documents from other ZIP files by the names in them, without
// taking the file apart.
func sniffOffice(data []byte) (Found, error) {
	has := func(name string) bool { return bytes.Contains(data, []byte(name)) }
	kind := ""
	for name, media := range map[string]string{"word/document.xml": Word, "xl/workbook.xml": Excel, "ppt/presentation.xml": PowerPoint} {
		if has(name) && has("[Content_Types].xml") {
			kind = media
		}
	}
	switch {
	case kind == "":
		return Found{MediaType: "application/zip"}, nil
	case has("/vbaProject.bin"):
		return Found{}, refuseFile("it has macros; save it without them, as .docx, .xlsx or .pptx, and upload that")
	default:
		return Found{MediaType: kind, Document: kind}, nil
	}
}

// Advice says what to do with a file of a type that is not taken; empty = nothing is
// known of it.
func Advice(mediaType string) string {
	family, _, _ := strings.Cut(mediaType, "/")
	switch {
	case mediaType == "application/zip" || mediaType == "application/x-gzip" || mediaType == "application/x-rar-compressed":
		return "unpack it and upload the files that are in it"
	case family == "image":
		return "save it as PNG or JPEG and upload that"
	case family == "audio" || family == "video":
		return "upload a transcript of it as text"
	case mediaType == "application/octet-stream":
		return "save it as PDF or as text in UTF-8 and upload that"
	default:
		return ""
	}
}

// refuseFile returns an error about a file.
func refuseFile(why string) error {
	return core.Errorf(core.ErrInvalid, "the file cannot be taken: %s", why)
}

func sniffImage(data []byte, media string) (Found, error) {
	config, _, err := image.DecodeConfig(bytes.NewReader(data))
	if media == "image/webp" {
		config, err = webpSize(data)
	}
	switch {
	case errors.Is(err, image.ErrFormat): // another kind of image: whether it is taken is not decided here
		return Found{MediaType: media}, nil
	case err != nil || config.Width <= 0 || config.Height <= 0:
		return Found{}, refuseFile("it begins like " + media + " and is none")
	case config.Width > MaxSide || config.Height > MaxSide:
		return Found{}, core.Errorf(core.ErrInvalid, "the file cannot be taken: the image has %d×%d pixels, at most %d are taken on each side",
			config.Width, config.Height, MaxSide)
	}
	return Found{MediaType: media, Width: config.Width, Height: config.Height}, nil
}

// errWebP says that there is no size in the header of a WebP file.
var errWebP = errors.New("not a WebP image")

// webpSize reads the header of a WebP file: RIFF, its length, WEBP, then the first
// chunk (RFC 9649, § 2.5 to 2.7).
func webpSize(data []byte) (image.Config, error) {
	const first, header = 20, 30 // where the first chunk's content begins, and how much is looked at
	if len(data) < header {
		return image.Config{}, errWebP
	}
	little := binary.LittleEndian
	switch b := data[first:]; string(data[12:16]) {
	case "VP8X":
		side := func(at int) int { return int(b[at]) + int(b[at+1])<<8 + int(b[at+2])<<16 + 1 }
		return image.Config{Width: side(4), Height: side(7)}, nil
	case "VP8L":
		if b[0] != 0x2f {
			return image.Config{}, errWebP
		}
		bits := little.Uint32(b[1:])
		const mask = 1<<14 - 1
		return image.Config{Width: int(bits&mask) + 1, Height: int(bits>>14&mask) + 1}, nil
	case "VP8 ":
		if !bytes.Equal(b[3:6], []byte{0x9d, 0x01, 0x2a}) {
			return image.Config{}, errWebP
		}
		const mask = 1<<14 - 1
		return image.Config{Width: int(little.Uint16(b[6:]) & mask), Height: int(little.Uint16(b[8:]) & mask)}, nil
	}
	return image.Config{}, errWebP
}

// sniffText tells the kinds of text apart.
func sniffText(data []byte, name, media string) (Found, error) {
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return Found{}, refuseFile("it is text, but not UTF-8; save it as UTF-8")
	}
	if start := bytes.TrimSpace(data); len(start) > 0 && (start[0] == '{' || start[0] == '[') && json.Valid(data) {
		return Found{MediaType: "application/json"}, nil
	}
	kinds := map[string]string{".csv": "text/csv", ".tsv": "text/tab-separated-values", ".md": "text/markdown", ".markdown": "text/markdown"}
	if kind := kinds[strings.ToLower(path.Ext(name))]; kind != "" {
		return Found{MediaType: kind}, nil
	}
	found := Found{MediaType: "text/plain"}
	if ext := strings.ToLower(path.Ext(name)); ext == ".html" || ext == ".htm" || ext == ".xhtml" || ext == "" && media == HTML { // else it is source
		found.Document = HTML
	}
	return found, nil
}

// IsText reports whether the text of such a file is sent to models.
func IsText(mediaType string) bool {
	return strings.HasPrefix(mediaType, "text/") || mediaType == "application/json"
}

// Allowed reports whether one of the types, such as image/png or text/*, is that
// of the file.
func Allowed(types []string, mediaType string) bool {
	family, _, _ := strings.Cut(mediaType, "/")
	return slices.ContainsFunc(types, func(t string) bool { return t == mediaType || t == family+"/*" || t == "*/*" })
}

// Name returns a file's name as it is kept: the last of its path, without what
// cannot be shown or could be taken for the end of a name, at most 120 bytes, its
// ending kept. A name of which nothing is left is "file".
func Name(name string) string {
	name = core.CleanText(name)
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		switch {
		case r < ' ' || r == 0x7f || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) || unicode.Is(unicode.Cc, r):
			return -1
		case strings.ContainsRune(`"<>[]{}|:*?`+"`", r) || r == utf8.RuneError:
			return '_'
		default:
			return r
		}
	}, name)
	name = strings.Trim(name, " .")
	const most, longestEnding = 120, 16
	if ext := path.Ext(name); len(name) > most && len(ext) <= longestEnding {
		name = core.Clip(name, most-len(ext)) + ext
	}
	name = strings.Trim(core.Clip(name, most), " .")
	if name == "" {
		return "file"
	}
	return name
}
