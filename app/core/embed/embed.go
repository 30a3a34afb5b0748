package embed

import (
	"context"
	"fmt"
	"math"

	"bobbin/app/core"
)

// Embedder makes vectors.
type Embedder interface {
	// Embed returns one vector for each text, in their order and of length 1. It
	// leaves texts as they are. All or nothing: with an error there are none.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// Model names what makes the vectors. Those of two names cannot be compared.
	Model() string
	// Dimension is how many numbers a vector has; 0 = not known before the first one.
	Dimension() int
}

// Limits of a vector.
const maxDimension = 16_384

// Unit returns v at length 1, in memory of its own. Of another dimension (0 = any),
// with what is no number, or without a direction it is an error.
func Unit(v []float32, dimension int) ([]float32, error) {
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

// Sound reports whether a stored vector can be compared with others of its
// dimension: its length is 1, as Unit left it.
func Sound(v []float32, dimension int) bool {
	if len(v) != dimension || dimension == 0 {
		return false
	}
	d := Dot(v, v)
	return d > 0.99 && d < 1.01 // not of NaN
}

// Dot returns the inner product, of vectors from Unit their cosine. Both have the
// same dimension. It always adds in the same order: equal vectors score the same
// wherever they are kept.
func Dot(a, b []float32) float32 {
	// Four sums, as each addition waits for the one before it: more than twice as
	// fast as one.
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

// Space returns the space in which the embedder's vectors lie.
func Space(e Embedder) core.VectorSpace {
	return core.VectorSpace{Model: e.Model(), Dimension: e.Dimension()}
}
