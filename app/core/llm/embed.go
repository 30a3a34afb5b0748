package llm

import (
	"context"
	"fmt"
	"math"

	"bobbin/app/core"
)

// Embedder embeds texts.
type Embedder interface {
	// Embed returns one vector for each text, in their order and of length 1. It does
	// not change the texts. With an error it returns no vectors.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// Model names the source of the vectors. Vectors of two models cannot be compared.
	Model() string
	// Dimension is how many numbers a vector has; 0 = not known before the first vector.
	Dimension() int
}

// EmbedAccepted returns the vectors of the texts by embed, which may be called more than once; nil for a
// text that the model refuses. Other errors are returned.
func EmbedAccepted(ctx context.Context, embed func(ctx context.Context, texts []string) ([][]float32, error), texts []string) ([][]float32, error) {
	vectors, err := embed(ctx, texts)
	switch {
	case err == nil || !IsKind(err, KindContextLength) && !IsKind(err, KindInvalid) && !IsKind(err, KindContentFilter):
		return vectors, err
	case len(texts) <= 1:
		return make([][]float32, len(texts)), nil
	}
	// At least one of them was refused. Bisection finds it in few calls.
	half := len(texts) / 2
	left, err := EmbedAccepted(ctx, embed, texts[:half])
	if err != nil {
		return nil, err
	}
	right, err := EmbedAccepted(ctx, embed, texts[half:])
	return append(left, right...), err
}

const maxDimension = 16_384

// UnitVector returns a copy of v with length 1. A wrong dimension (0 = any), a value that is not
// a number, and the zero vector are errors.
func UnitVector(v []float32, dimension int) ([]float32, error) {
	if len(v) == 0 || len(v) > maxDimension || dimension > 0 && len(v) != dimension {
		return nil, fmt.Errorf("a vector of %d numbers, want %d", len(v), dimension)
	}
	var sum float64
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	if math.IsNaN(sum) || math.IsInf(sum, 0) || sum == 0 {
		return nil, fmt.Errorf("a vector of length %g", math.Sqrt(sum))
	}
	scale := 1 / math.Sqrt(sum)
	out := make([]float32, len(v))
	for i, f := range v {
		out[i] = float32(float64(f) * scale)
	}
	return out, nil
}

// DotProduct returns the inner product: for vectors from Unit, their cosine. Both must have the
// same dimension. It always adds in the same order, so that equal vectors have equal
// scores in every database.
func DotProduct(a, b []float32) float32 {
	// Four independent sums are more than twice as fast as one.
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	i := 0
	for ; i+8 <= len(a); i += 8 {
		x, y := a[i:i+8:i+8], b[i:i+8:i+8]
		s0 += x[0]*y[0] + x[4]*y[4]
		s1 += x[1]*y[1] + x[5]*y[5]
		s2 += x[2]*y[2] + x[6]*y[6]
		s3 += x[3]*y[3] + x[7]*y[7]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// SpaceOf returns the vector space of the embedder.
func SpaceOf(e Embedder) core.VectorSpace {
	return core.VectorSpace{Model: e.Model(), Dimension: e.Dimension()}
}
