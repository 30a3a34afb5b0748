package summarize

import (
	"context"
	"math"

	"bobbin/app/core"
	"bobbin/app/core/redact"
)

// CheckNative returns why the words of a provider's own compaction are no summary of the request's
// messages; nil = they may be one. Earlier are the words of the compaction that it extends. They
// pass the same checks as a model's answer, but nothing is mended: they go back as they came.
// Errors of Load and of ctx are returned as well.
func CheckNative(ctx context.Context, count core.TextCounter, req Request, earlier, text string) error {
	req, _, err := prepareMaterial(ctx, req)
	if err != nil {
		return err
	}
	if redact.Text(text) != text || core.CleanText(text) != text {
		return errSecrets
	}
	clean := cleanAnswer(text)
	if clean == "" {
		return errEmpty
	}
	transcript, _ := fitPieces(count, transcriptPieces(count, req.Messages, resultLimit(req.Preset)), math.MaxInt)
	held := evidence{transcript: transcript, previous: req.Previous + "\n" + earlier, minTokens: minSummaryTokens(req.Replaces, req.Limit)}
	return held.checkText(clean, count.Text(clean))
}
