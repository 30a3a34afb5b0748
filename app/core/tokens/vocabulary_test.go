package tokens_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"flag"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pkoukk/tiktoken-go-loader/assets"

	"bobbin/app/core/tokens"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

var update = flag.Bool("update", false, "write the embedded vocabulary")

// vocabularySHA256 is the digest that OpenAI publishes with the file
// (tiktoken_ext/openai_public.py).
const vocabularySHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"

// The embedded vocabulary is the published one.
func TestVocabulary(t *testing.T) {
	t.Parallel()
	published := must.Get(assets.Assets.ReadFile("cl100k_base.tiktoken"))(t)
	sum := sha256.Sum256(published)
	if got := hex.EncodeToString(sum[:]); got != vocabularySHA256 {
		t.Fatalf("the vocabulary of tiktoken-go-loader has the SHA-256 %s, want %s", got, vocabularySHA256)
	}
	type token struct {
		rank int
		text []byte
	}
	var list []token
	for line := range strings.Lines(string(published)) {
		encoded, rank, _ := strings.Cut(strings.TrimSpace(line), " ")
		text := must.Get(base64.StdEncoding.DecodeString(encoded))(t)
		n := must.Get(strconv.Atoi(rank))(t)
		list = append(list, token{n, text})
	}
	slices.SortFunc(list, func(a, b token) int { return cmp.Compare(a.rank, b.rank) })
	var want []byte
	for i, tok := range list {
		must.True(t, tok.rank == i && len(tok.text) <= 255, "token %d has the rank %d and %d bytes", i, tok.rank, len(tok.text))
		want = append(append(want, byte(len(tok.text))), tok.text...)
	}
	if *update {
		must.Do(t, os.WriteFile("data/cl100k_base.bin", want, 0o644))
		return
	}
	compare.Equal(t, "data/cl100k_base.bin is not the published vocabulary; write it with: go test ./app/core/tokens -run TestVocabulary -update", string(want), tokens.VocabularyData())
}
