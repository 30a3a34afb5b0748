package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// writer makes up messages, the same ones for the same seed. One goroutine owns it.
type writer struct {
	rand *rand.Rand
}

func newWriter(seed uint64) *writer { return &writer{rand.New(rand.NewPCG(seed, 0))} }

// sentences returns so many sentences of about 14 tokens.
func (w *writer) sentences(n int) string {
	subjects := []string{"The pump in hall three", "Our second supplier", "The night shift", "A visitor from Graz", "The new controller", "Somebody from accounting"}
	verbs := []string{"reported", "lost", "measured", "replaced", "asked for", "could not explain", "wrote down"}
	objects := []string{"the pressure of valve %d", "%d liters of coolant", "invoice %d", "the reading of sensor %d", "a deviation of %d microns", "order %d"}
	tails := []string{"before the inspection began.", "and nobody noticed until Monday.", "although the manual forbids it.", "because the seal was worn out.", "which is within the tolerance."}
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "%s %s "+pick(w, objects)+" %s ", pick(w, subjects), pick(w, verbs), w.rand.IntN(9000), pick(w, tails))
	}
	return strings.TrimSpace(b.String())
}

// chinese returns so many unspaced sentences.
func (w *writer) chinese(n int) string {
	starts := []string{"今天早上", "昨天夜里", "检查之前", "星期一"}
	middles := []string{"三号车间的水泵", "新的控制器", "第二家供应商", "夜班的同事"}
	ends := []string{"报告了压力异常。", "没有解释读数的偏差。", "更换了磨损的密封件。", "记录了传感器的数值。"}
	var b strings.Builder
	for range n {
		b.WriteString(pick(w, starts) + pick(w, middles) + pick(w, ends))
	}
	return b.String()
}

func pick(w *writer, words []string) string { return words[w.rand.IntN(len(words))] }

// turn is the question of a turn of a long conversation: 60 to 120 tokens, every
// 97th 1,000 to 3,000, every 13th in Chinese; every second asks for a tool.
func (w *writer) turn(n int) string {
	text := fmt.Sprintf("Turn %d. ", n)
	switch {
	case n%97 == 50:
		text += w.sentences(70 + w.rand.IntN(120))
	case n%13 == 7:
		text += w.chinese(4 + w.rand.IntN(3))
	default:
		text += w.sentences(4 + w.rand.IntN(4))
	}
	if n%2 == 0 {
		text += " Use a tool to check the number."
	}
	return text
}
