package apptest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"bobbin/tests/seed"
)

// Writer makes up messages, the same ones for the same number. One goroutine owns it.
type Writer struct {
	Rand *rand.Rand
}

// NewWriter returns the writer of the number.
func NewWriter(number uint64) *Writer { return &Writer{seed.Fixed(number, 0)} }

// Sentences returns so many sentences of about 14 tokens.
func (w *Writer) Sentences(n int) string {
	subjects := []string{"The pump in hall three", "Our second supplier", "The night shift", "A visitor from Graz", "The new controller", "Somebody from accounting"}
	verbs := []string{"reported", "lost", "measured", "replaced", "asked for", "could not explain", "wrote down"}
	objects := []string{"the pressure of valve %d", "%d liters of coolant", "invoice %d", "the reading of sensor %d", "a deviation of %d microns", "order %d"}
	tails := []string{"before the inspection began.", "and nobody noticed until Monday.", "although the manual forbids it.", "because the seal was worn out.", "which is within the tolerance."}
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "%s %s "+chooseWord(w, objects)+" %s ", chooseWord(w, subjects), chooseWord(w, verbs), w.Rand.IntN(9000), chooseWord(w, tails))
	}
	return strings.TrimSpace(b.String())
}

// Chinese returns so many unspaced sentences.
func (w *Writer) Chinese(n int) string {
	starts := []string{"今天早上", "昨天夜里", "检查之前", "星期一"}
	middles := []string{"三号车间的水泵", "新的控制器", "第二家供应商", "夜班的同事"}
	ends := []string{"报告了压力异常。", "没有解释读数的偏差。", "更换了磨损的密封件。", "记录了传感器的数值。"}
	var b strings.Builder
	for range n {
		b.WriteString(chooseWord(w, starts) + chooseWord(w, middles) + chooseWord(w, ends))
	}
	return b.String()
}

func chooseWord(w *Writer, words []string) string { return words[w.Rand.IntN(len(words))] }

// Question is the question of a turn of a long conversation: 60 to 120 tokens, every
// 97th 1,000 to 3,000, every 13th in Chinese; every second asks for a tool.
func (w *Writer) Question(n int) string {
	text := fmt.Sprintf("Turn %d. ", n)
	switch {
	case n%97 == 50:
		text += w.Sentences(70 + w.Rand.IntN(120))
	case n%13 == 7:
		text += w.Chinese(4 + w.Rand.IntN(3))
	default:
		text += w.Sentences(4 + w.Rand.IntN(4))
	}
	if n%2 == 0 {
		text += " Use a tool to check the number."
	}
	return text
}
