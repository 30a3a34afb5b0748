package core

import (
	"fmt"
	"strings"
)

const (
	// leastEncoded is the shortest run of base64 or hex that counts as data, in characters: shorter ones
	// may be keys, hashes and tokens, which a model may need.
	leastEncoded = 1024
	// leastDataURL is the same of a data: URL.
	leastDataURL = 256
	// wrappedLine is the shortest line of data that goes on in the next line.
	wrappedLine = 60
	// longestPrefix bounds what stands before the data of a URL.
	longestPrefix = 128
)

// encodedRun is data in a text: an image in base64, say.
type encodedRun struct {
	begin, end  int
	description string // such as [image/png, 150 KB]
}

// findEncoded returns the data in a text, in order: long runs of base64 or hex, also wrapped into lines
// and within JSON, and the data: URLs around them. It is linear in the size of the text.
func findEncoded(text string) []encodedRun {
	var out []encodedRun
	for i := 0; i < len(text); {
		run := readRun(text[i:])
		if run.length == 0 {
			i++
			continue
		}
		begin, end, media := i, i+run.length, ""
		if run.length >= leastDataURL {
			begin, media = dataURL(text, i)
		}
		switch {
		case media != "":
		case run.length < leastEncoded || !run.has[letterDigit] || !run.has[letterLower] && !run.has[letterUpper]:
			begin = end
		case !run.has[letterOther]:
			media = "hex"
		case run.has[letterLower] && run.has[letterUpper]:
			media = "base64"
		default:
			begin = end
		}
		if begin < end {
			size := run.data / 4 * 3
			if media == "hex" {
				size = run.data / 2
			}
			out = append(out, encodedRun{begin, end, fmt.Sprintf("[%s, %s]", media, ByteSize(int64(size)))})
		}
		i = end
	}
	return out
}

// dataURL returns where the data: URL begins whose data begins at i, and its type; i and empty if
// there is none.
func dataURL(text string, i int) (begin int, media string) {
	before := text[max(i-longestPrefix, 0):i]
	at := strings.LastIndex(before, "data:")
	head, ok := strings.CutSuffix(before[max(at, 0):], ";base64,")
	if at < 0 || !ok || strings.ContainsAny(head, " \"'<>()\n") {
		return i, ""
	}
	media, _, _ = strings.Cut(strings.ReplaceAll(strings.TrimPrefix(head, "data:"), `\/`, "/"), ";")
	if media == "" {
		media = "data"
	}
	return i - len(before) + at, media
}

// The classes of letters of encoded data.
const (
	letterUpper = iota
	letterLower
	letterDigit
	letterOther // not of hex
	letterClasses
)

// letterRun is a run of letters of base64.
type letterRun struct {
	length int // bytes, with escapes and the ends of lines
	data   int // letters
	has    [letterClasses]bool
}

// readRun reads the run at the beginning of the text.
func readRun(text string) letterRun {
	var run letterRun
	line, lastLine := 0, 0 // letters of this line; where the one before it ended
	i := 0
	for i < len(text) {
		c := text[i]
		switch {
		case c >= 'A' && c <= 'Z':
			run.has[letterUpper] = true
			run.has[letterOther] = run.has[letterOther] || c > 'F'
		case c >= 'a' && c <= 'z':
			run.has[letterLower] = true
			run.has[letterOther] = run.has[letterOther] || c > 'f'
		case c >= '0' && c <= '9':
			run.has[letterDigit] = true
		case c == '+' || c == '/' || c == '-' || c == '_':
			run.has[letterOther] = true
		case strings.HasPrefix(text[i:], `\/`):
			run.has[letterOther] = true
			i++
		default:
			n := lineBreak(text[i:])
			if n == 0 || line < wrappedLine {
				run.length = endOfRun(text, i, lastLine)
				return run
			}
			lastLine, line = i, 0
			i += n
			continue
		}
		run.data++
		line++
		i++
	}
	run.length = endOfRun(text, i, lastLine)
	return run
}

// endOfRun returns where a run ends whose letters end at i, with the padding. What follows an end of
// line and is not the last line of the data is text.
func endOfRun(text string, i, lastLine int) int {
	padded := i
	for padded < len(text) && padded < i+2 && text[padded] == '=' {
		padded++
	}
	if lastLine > 0 && padded == i && i < len(text) && strings.IndexByte("\"'\\\r\n<", text[i]) < 0 {
		return lastLine
	}
	return padded
}

// lineBreak returns the length of the end of a line that the text begins with, also as JSON writes it.
func lineBreak(text string) int {
	for _, end := range []string{"\r\n", "\n", `\r\n`, `\n`} {
		if strings.HasPrefix(text, end) {
			return len(end)
		}
	}
	return 0
}

// describeEncoded returns the text with descriptions in the places of the data.
func describeEncoded(text string, runs []encodedRun) string {
	var out strings.Builder
	at := 0
	for _, run := range runs {
		out.WriteString(text[at:run.begin])
		out.WriteString(run.description)
		at = run.end
	}
	out.WriteString(text[at:])
	return out.String()
}

// offsetBefore returns the place in a text for one in the text that describes its data.
func offsetBefore(offset int, runs []encodedRun) int {
	for _, run := range runs {
		if offset <= run.begin {
			break
		}
		offset += run.end - run.begin - len(run.description)
	}
	return offset
}
