package calc

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// number is a value on the way. Its fraction is never changed.
type number struct {
	r     *big.Rat
	exact bool // false = rounded to precision, or made from something that was
}

const (
	// maxBits bounds the numerator and the denominator of an exact number: what
	// MaxDigits decimal digits take.
	maxBits = MaxDigits * 3322 / 1000
	// precision is that of rounded numbers, in bits: 77 digits, far more than what
	// is shown of them, so that errors do not add up to something visible.
	precision = 256
	// noise is the power of two under which a rounded number is nothing but the
	// error of what it was made from.
	noise = -precision * 2 / 3
	// cleanDigits is the same in decimal digits.
	cleanDigits = 50
)

func newInt(i int64) number { return number{r: big.NewRat(i, 1), exact: true} }

func (n number) isZero() bool { return n.r.Sign() == 0 }

func (n number) isOne() bool { return n.r.Cmp(big.NewRat(1, 1)) == 0 }

func (n number) negated() number {
	return number{r: new(big.Rat).Neg(n.r), exact: n.exact}
}

// float returns n with prec bits.
func (n number) float(prec uint) *big.Float {
	return new(big.Float).SetPrec(prec).SetRat(n.r)
}

// rounded returns a number with the first precision bits of f.
func rounded(f *big.Float) (number, error) {
	f = new(big.Float).SetPrec(precision).Set(f)
	if exponent := f.MantExp(nil); exponent > maxBits {
		return number{}, fmt.Errorf("a number on the way is too large; up to %d digits are possible", MaxDigits)
	} else if exponent < -maxBits {
		return number{r: new(big.Rat)}, nil
	}
	r, _ := f.Rat(nil)
	return number{r: r}, nil
}

// bounded returns n, rounded if its fraction has grown too large.
func (n number) bounded() (number, error) {
	if n.exact && n.r.Num().BitLen() <= maxBits && n.r.Denom().BitLen() <= maxBits {
		return n, nil
	}
	return rounded(n.float(precision))
}

// apply returns n operator m.
func (n number) apply(operator string, m number) (number, error) {
	result := number{r: new(big.Rat), exact: n.exact && m.exact}
	if (operator == "/" || operator == "%") && m.isZero() {
		return number{}, errors.New("division by zero")
	}
	switch operator {
	case "+":
		result.r.Add(n.r, m.r)
		return result.withoutNoise(n).bounded()
	case "-":
		result.r.Sub(n.r, m.r)
		return result.withoutNoise(n).bounded()
	case "*":
		result.r.Mul(n.r, m.r)
	case "/":
		result.r.Quo(n.r, m.r)
	case "%": // n - m*floor(n/m)
		quotient := number{r: new(big.Rat).Quo(n.r, m.r), exact: result.exact}
		result.r.Sub(n.r, result.r.Mul(new(big.Rat).SetInt(quotient.floor()), m.r))
		return result.withoutNoise(n).bounded()
	default:
		panic("calc: no operator " + operator)
	}
	return result.bounded()
}

// withoutNoise returns zero for a difference that is only the error of what it
// was made from, such as sqrt(2)^2 - 2; operand is one of the two.
func (n number) withoutNoise(operand number) number {
	if !n.exact && !n.isZero() && exponent(n) < exponent(operand)+noise {
		return number{r: new(big.Rat)}
	}
	return n
}

// exponent returns e of the number as x * 2^e, with x from 0.5 to 1.
func exponent(n number) int { return n.float(precision).MantExp(nil) }

// clean returns the value without the error of a rounded number, so that what is
// an integer but for that error becomes one.
func (n number) clean() *big.Rat {
	if n.exact {
		return n.r
	}
	r, ok := new(big.Rat).SetString(n.float(precision).Text('e', cleanDigits))
	if !ok {
		panic("calc: a number that cannot be read again")
	}
	return r
}

// floor returns the greatest integer that is not above n.
func (n number) floor() *big.Int {
	r := n.clean()
	return new(big.Int).Div(r.Num(), r.Denom()) // Euclidean: with a positive divisor it rounds down
}

// nearestInt returns the integer next to r, the one away from zero for halves.
func nearestInt(r *big.Rat) *big.Int {
	double := new(big.Int).Lsh(new(big.Int).Abs(r.Num()), 1)
	double.Add(double, r.Denom())
	double.Quo(double, new(big.Int).Lsh(r.Denom(), 1))
	if r.Sign() < 0 {
		double.Neg(double)
	}
	return double
}

// power returns n to the power of m.
func (n number) power(m number) (number, error) {
	exact := n.exact && m.exact
	switch {
	case n.isZero() && m.r.Sign() < 0:
		return number{}, errors.New("division by zero: zero to a negative power")
	case m.isZero() || n.isOne():
		return number{r: big.NewRat(1, 1), exact: exact}, nil
	case n.isZero():
		return number{r: new(big.Rat), exact: exact}, nil
	case m.r.IsInt():
		return n.integerPower(m.r.Num(), exact)
	case n.r.Sign() < 0:
		return number{}, errors.New("a negative number to the power of a fraction is not a real number")
	case m.exact && m.r.Cmp(big.NewRat(1, 2)) == 0:
		return squareRoot(n)
	default:
		return n.roundedPower(m)
	}
}

// integerPower returns n to the power of m; neither is zero, and n is not 1.
// Exactly, if the estimated size of the fraction allows it.
func (n number) integerPower(m *big.Int, exact bool) (number, error) {
	size := number{r: new(big.Rat).Abs(n.r), exact: exact}
	times, _ := new(big.Float).SetInt(new(big.Int).Abs(m)).Float64()
	bits := float64(max(size.r.Num().BitLen(), size.r.Denom().BitLen()) - 1)
	result, err := size, error(nil)
	switch {
	case size.isOne():
	case exact && bits*times <= maxBits:
		result, err = raise(size.r, m).bounded()
	default:
		result, err = size.roundedPower(whole(m))
	}
	if err == nil && n.r.Sign() < 0 && m.Bit(0) == 1 {
		result = result.negated()
	}
	return result, err
}

// raise returns base to the power of m, exactly.
func raise(base *big.Rat, m *big.Int) number {
	times := new(big.Int).Abs(m)
	num := new(big.Int).Exp(base.Num(), times, nil)
	denom := new(big.Int).Exp(base.Denom(), times, nil)
	if m.Sign() < 0 {
		num, denom = denom, num
	}
	return number{r: new(big.Rat).SetFrac(num, denom), exact: true}
}

// roundedPower returns n to the power of m for a positive n, by logarithms.
func (n number) roundedPower(m number) (number, error) {
	ln := naturalLog(n)
	ln.Mul(ln, m.float(ln.Prec()))
	digits, _ := ln.Float64()
	digits /= math.Ln10
	switch {
	case digits > MaxDigits:
		return number{}, fmt.Errorf("the power is too large: it has %s digits; up to %d are possible", count(digits), MaxDigits)
	case digits < -MaxDigits:
		return number{}, fmt.Errorf("the power is too small: it has %s zeros behind the point; up to %d are possible", count(-digits), MaxDigits)
	}
	return rounded(exponential(ln))
}

// count returns a number of digits as errors tell it.
func count(digits float64) string {
	switch {
	case digits < 1e15:
		return "about " + strconv.FormatFloat(digits, 'f', 0, 64)
	case math.IsInf(digits, 0):
		return "more than 1e308"
	default:
		return "about " + strconv.FormatFloat(digits, 'g', 3, 64)
	}
}
