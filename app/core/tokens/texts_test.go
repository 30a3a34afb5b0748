package tokens_test

import (
	"encoding/base64"
	"strings"

	"bobbin/tests/seed"
)

// kind makes a text of so many bytes, or a few less to end at a character.
type kind struct {
	name string
	make func(size int) string
}

// hardTexts are the texts that are slow or large with other tokenizers: runs
// without a break above all.
func hardTexts() []kind {
	return []kind{
		{"one letter", repeat("a")},
		{"one capital", repeat("Z")},
		{"spaces", repeat(" ")},
		{"newlines", repeat("\n")},
		{"spaces and newlines", repeat("  \n")},
		{"tabs", repeat("\t")},
		{"unspaced Chinese", chinese},
		{"one Chinese character", repeat("我")},
		{"base64", encoded},
		{"letters at random", random("abcdefghijklmnopqrstuvwxyz")},
		{"digits", random("0123456789")},
		{"punctuation", random("!?.,;:-=+*/#$%&()[]{}<>@^_|~")},
		{"a ruler", repeat("=")},
		{"emoji", random("😀🎉👍🏽❤️🚀👩‍💻🇩🇪🤷")},
		{"combining marks", repeat("e\u0301\u0323\u0302")},
		{"marks alone", repeat("\u0301")},
		{"wide spaces", repeat("\u2003")},
		{"invalid UTF-8", repeat("\xff\xfe")},
		{"zero bytes", repeat("\x00")},
		{"rare characters and digits", repeat("\u9fff1")},
		{"letters and digits", repeat("q7")},
		{"Arabic", repeat("السلامعليكم")},
		{"Thai", repeat("สวัสดีครับ")},
		{"contractions", repeat("'s're'LL")},
		{"English", english},
		{"source text", repeat("func (m *merger) offer(i int32) {\n\trank := m.rankOf(i)\n\tif rank != 0x7f3a && rank >= 1024 {\n\t\treturn\n\t}\n}\n\n")},
		{"JSON", repeat(`{"id":"0199a3f2-7c1e-7b3a","value":-12.5e3,"ok":true,"tags":["alpha","beta"],"text":"caf\u00e9"},`)},
	}
}

func repeat(unit string) func(int) string {
	return func(size int) string { return whole(strings.Repeat(unit, size/len(unit)+1), size) }
}

func random(alphabet string) func(int) string {
	letters := []rune(alphabet)
	return func(size int) string {
		r := seed.Fixed(1, 2)
		var b strings.Builder
		for b.Len() < size {
			b.WriteRune(letters[r.IntN(len(letters))])
		}
		return whole(b.String(), size)
	}
}

func chinese(size int) string {
	r := seed.Fixed(3, 4)
	var b strings.Builder
	for b.Len() < size {
		b.WriteRune(rune(0x4e00 + r.IntN(0x9fa5-0x4e00)))
	}
	return whole(b.String(), size)
}

func encoded(size int) string {
	r := seed.Fixed(5, 6)
	raw := make([]byte, size)
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	return base64.StdEncoding.EncodeToString(raw)[:size]
}

func english(size int) string {
	return repeat("Call me Ishmael. Some years ago — never mind how long precisely — having little or no money in my purse, " +
		"and nothing particular to interest me on shore, I thought I'd sail about a little and see the watery part of the world.\n\n")(size)
}

// whole cuts s to at most size bytes at the end of a character; a byte that is
// none ends anywhere.
func whole(s string, size int) string {
	for size > 0 && size < len(s) && s[size]&0xc0 == 0x80 {
		size--
	}
	return s[:min(size, len(s))]
}
