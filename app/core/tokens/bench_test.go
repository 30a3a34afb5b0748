package tokens_test

import (
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer/codec"
)

// BenchmarkMiB prints what 1 MiB of each kind of text costs in seconds of one core,
// and how far the count is from the exact one. The target is 1 s and 1 %.
//
//	go test -run XXX -bench MiB ./app/core/tokens
func BenchmarkMiB(b *testing.B) {
	counter := newCounter(b)
	counter.Text("load the vocabulary")
	exact := codec.NewCl100kBase()
	for _, k := range hardTexts() {
		text := k.make(mib)
		b.Run(strings.ReplaceAll(k.name, " ", "_"), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			n, before := 0, cpuTime()
			for b.Loop() {
				n = counter.Text(text)
			}
			cpu := cpuTime() - before
			b.ReportMetric(float64(n), "tokens")
			if want, ok := second(b, exact, text); ok {
				b.ReportMetric(100*float64(n-want)/float64(want), "%off")
			}
			b.ReportMetric(cpu.Seconds()/float64(b.N), "cpu-s/MiB")
		})
	}
}

// BenchmarkFirst is the first count of a process: it loads the vocabulary.
func BenchmarkFirst(b *testing.B) {
	for b.Loop() {
		newCounter(b).Text("hello")
	}
}

// BenchmarkMessage is an ordinary message, counted for the first time and again
// (C1: a cache for repeated strings).
func BenchmarkMessage(b *testing.B) {
	counter := newCounter(b)
	text := english(2000)
	long := english(20_000) // too long for the cache
	counter.Text(text)
	b.Run("2_kB_repeated", func(b *testing.B) {
		for b.Loop() {
			counter.Text(text)
		}
	})
	b.Run("20_kB", func(b *testing.B) {
		for b.Loop() {
			counter.Text(long)
		}
	})
	b.Run("2_kB_repeated_by_all_cores", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				counter.Text(text)
			}
		})
	})
}
