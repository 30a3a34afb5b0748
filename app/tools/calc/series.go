package calc

import (
	"math"
	"math/big"
)

// guard is how many bits more than precision the series work with.
const guard = 64

// series sums first, then term after term, until a term is too small to count.
// next changes the i-th term into the following one.
func series(first, term *big.Float, next func(term *big.Float, i int64)) *big.Float {
	sum := new(big.Float).SetPrec(term.Prec()).Set(first)
	for i := int64(1); term.Sign() != 0 && term.MantExp(nil) > sum.MantExp(nil)-int(term.Prec()); i++ {
		sum.Add(sum, term)
		next(term, i)
	}
	return sum
}

func newFloat(prec uint, x float64) *big.Float { return new(big.Float).SetPrec(prec).SetFloat64(x) }

func integer(prec uint, i int64) *big.Float { return new(big.Float).SetPrec(prec).SetInt64(i) }

// exponential returns e to the power of x, with the precision of x. |x| must be
// such that the result's exponent fits, which roundedPower sees to.
func exponential(x *big.Float) *big.Float {
	prec := x.Prec() + guard
	// e^x = (e^(x/2^halvings))^(2^halvings); small arguments need few terms.
	halvings := max(0, x.MantExp(nil)+16)
	small := new(big.Float).SetPrec(prec + uint(halvings))
	small.SetMantExp(x, -halvings)
	term := new(big.Float).SetPrec(small.Prec()).Set(small)
	result := series(integer(small.Prec(), 1), term, func(term *big.Float, i int64) {
		term.Mul(term, small)
		term.Quo(term, integer(prec, i+1))
	})
	for range halvings {
		result.Mul(result, result)
	}
	return result.SetPrec(x.Prec())
}

// roughLn returns the natural logarithm of a positive f of any size, as float64.
func roughLn(f *big.Float) float64 {
	mantissa := new(big.Float)
	exponent := f.MantExp(mantissa)
	m, _ := mantissa.Float64()
	return math.Log(m) + float64(exponent)*math.Ln2
}

// naturalLog returns the natural logarithm of a positive n. Near 1, where the
// logarithm is small, it works with as many bits more.
func naturalLog(n number) *big.Float {
	off := number{r: new(big.Rat).Sub(n.r, big.NewRat(1, 1))}
	if off.isZero() {
		return integer(precision, 0)
	}
	prec := uint(precision + guard + max(0, -exponent(off)))
	x := n.float(prec)
	y := newFloat(prec, roughLn(x))
	if small, _ := off.r.Float64(); math.Abs(small) < 0.5 {
		y.SetFloat64(math.Log1p(small))
	}
	// Halley's method on e^y = x: y += 2(x-e^y)/(x+e^y). Each step triples the
	// number of right bits.
	for right := uint(32); right < prec; right *= 3 {
		power := exponential(y)
		step := new(big.Float).SetPrec(prec).Sub(x, power)
		step.Quo(step, power.Add(power, x))
		y.Add(y, step.Add(step, step))
	}
	return y
}

// pi returns π with prec bits, by Machin's formula 16 atan(1/5) - 4 atan(1/239).
func pi(prec uint) *big.Float {
	a, b := arctanOfInverse(prec+guard, 5), arctanOfInverse(prec+guard, 239)
	a.Mul(a, integer(prec, 16))
	return a.Sub(a, b.Mul(b, integer(prec, 4))).SetPrec(prec)
}

// arctanOfInverse returns atan(1/x) = 1/x - 1/3x³ + 1/5x⁵ - …
func arctanOfInverse(prec uint, x int64) *big.Float {
	power := new(big.Float).SetPrec(prec).Quo(integer(prec, 1), integer(prec, x))
	square := integer(prec, -x*x)
	term := new(big.Float).SetPrec(prec).Quo(power, square)
	first := new(big.Float).Copy(power)
	power.Set(term)
	return series(first, term.Quo(term, integer(prec, 3)), func(term *big.Float, i int64) {
		power.Quo(power, square)
		term.Quo(power, integer(prec, 2*i+3))
	})
}

// sine returns sin x, and cosine cos x, of an x that is not large.
func sine(x *big.Float) *big.Float {
	return alternating(x, x, 2)
}

func cosine(x *big.Float) *big.Float {
	return alternating(x, integer(x.Prec(), 1), 1)
}

// alternating sums first - first·x²/(k(k+1)) + … with k = from, from+2, …
func alternating(x, first *big.Float, from int64) *big.Float {
	prec := x.Prec()
	square := new(big.Float).SetPrec(prec).Mul(x, x)
	square.Neg(square)
	next := func(term *big.Float, i int64) {
		k := from + 2*i
		term.Mul(term, square)
		term.Quo(term, integer(prec, k*(k+1)))
	}
	term := new(big.Float).SetPrec(prec).Set(first)
	next(term, 0)
	return series(first, term, next)
}
