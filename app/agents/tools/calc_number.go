package tools

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// number is an intermediate value. Its fraction never changes.
type number struct {
	r     *big.Rat
	exact bool // false = rounded, or computed from a rounded number
}

const (
	// maxBits bounds the numerator and the denominator of an exact number: the size of
	// MaxNumberDigits decimal digits.
	maxBits = MaxNumberDigits * 3322 / 1000
	// precision is the precision of rounded numbers, in bits. The functions of package
	// math have 53 bits, a little more than the 15 digits that are shown.
	precision = 256
	// guard is how many bits more than precision intermediate results have.
	guard = 64
	// noise is the power of two below which a difference of rounded numbers, relative to
	// them, is only their error.
	noise = -49
)

func newInt(i int64) number { return number{r: big.NewRat(i, 1), exact: true} }

func (n number) isZero() bool { return n.r.Sign() == 0 }

func (n number) isOne() bool { return n.minusOne().Sign() == 0 }

func (n number) minusOne() *big.Rat { return new(big.Rat).Sub(n.r, big.NewRat(1, 1)) }

func (n number) negate() number {
	return number{r: new(big.Rat).Neg(n.r), exact: n.exact}
}

// toFloat returns n with prec bits.
func (n number) toFloat(prec uint) *big.Float {
	return new(big.Float).SetPrec(prec).SetRat(n.r)
}

// roundFloat returns a number with the first precision bits of f.
func roundFloat(f *big.Float) (number, error) {
	f = new(big.Float).SetPrec(precision).Set(f)
	if exponent := f.MantExp(nil); exponent > maxBits {
		return number{}, fmt.Errorf("an intermediate number is too large; up to %d digits are possible", MaxNumberDigits)
	} else if exponent < -maxBits {
		return number{r: new(big.Rat)}, nil
	}
	r, _ := f.Rat(nil)
	return number{r: r}, nil
}

// fromFloat returns the rounded number of a result of package math.
func fromFloat(f float64) (number, error) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return number{}, errors.New("the result is too large; functions return up to 308 digits")
	}
	return number{r: new(big.Rat).SetFloat64(f)}, nil
}

// roundIfLarge returns n, rounded if its fraction is too large.
func (n number) roundIfLarge() (number, error) {
	if n.exact && n.r.Num().BitLen() <= maxBits && n.r.Denom().BitLen() <= maxBits {
		return n, nil
	}
	return roundFloat(n.toFloat(precision))
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
		return result.withoutNoise(n).roundIfLarge()
	case "-":
		result.r.Sub(n.r, m.r)
		return result.withoutNoise(n).roundIfLarge()
	case "*":
		result.r.Mul(n.r, m.r)
	case "/":
		result.r.Quo(n.r, m.r)
	case "%": // n - m*floor(n/m)
		quotient := number{r: new(big.Rat).Quo(n.r, m.r), exact: result.exact}
		result.r.Sub(n.r, result.r.Mul(new(big.Rat).SetInt(quotient.floor()), m.r))
		return result.withoutNoise(n).roundIfLarge()
	default:
		panic("calc: no operator " + operator)
	}
	return result.roundIfLarge()
}

// withoutNoise returns zero for a difference that is only the error of its operands, such
// as sqrt(2)^2 - 2; operand is one of the two.
func (n number) withoutNoise(operand number) number {
	if !n.exact && !n.isZero() && binaryExponent(n) < binaryExponent(operand)+noise {
		return number{r: new(big.Rat)}
	}
	return n
}

// binaryExponent returns e of n = x * 2^e with x from 0.5 to 1.
func binaryExponent(n number) int { return n.toFloat(precision).MantExp(nil) }

// withoutRoundingError returns the value; if a rounded number is an integer except for its
// error, the integer.
func (n number) withoutRoundingError() *big.Rat {
	if n.exact {
		return n.r
	}
	integer := new(big.Rat).SetInt(nearestInt(n.r))
	off := number{r: new(big.Rat).Sub(n.r, integer)}
	if off.isZero() || binaryExponent(off) < binaryExponent(n)+noise {
		return integer
	}
	return n.r
}

// floor returns the largest integer that is at most n.
func (n number) floor() *big.Int {
	r := n.withoutRoundingError()
	return new(big.Int).Div(r.Num(), r.Denom()) // Euclidean: with a positive divisor it rounds down
}

// nearestInt returns the nearest integer; halves round away from zero.
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

// integerPower returns n to the power of m; neither is zero, and n is not 1. It is exact
// if the estimated size of the fraction allows it.
func (n number) integerPower(m *big.Int, exact bool) (number, error) {
	size := number{r: new(big.Rat).Abs(n.r), exact: exact}
	times, _ := new(big.Float).SetInt(new(big.Int).Abs(m)).Float64()
	bits := float64(max(size.r.Num().BitLen(), size.r.Denom().BitLen()) - 1)
	result, err := size, error(nil)
	switch {
	case size.isOne():
	case exact && bits*times <= maxBits:
		result, err = raiseExactly(size.r, m).roundIfLarge()
	default:
		result, err = size.roundedPower(fromInt(m))
	}
	if err == nil && n.r.Sign() < 0 && m.Bit(0) == 1 {
		result = result.negate()
	}
	return result, err
}

// raiseExactly returns base to the power of m, exactly.
func raiseExactly(base *big.Rat, m *big.Int) number {
	times := new(big.Int).Abs(m)
	num := new(big.Int).Exp(base.Num(), times, nil)
	denom := new(big.Int).Exp(base.Denom(), times, nil)
	if m.Sign() < 0 {
		num, denom = denom, num
	}
	return number{r: new(big.Rat).SetFrac(num, denom), exact: true}
}

// tinyExponent is the exponent below which (1+x)^m is e^(xm) within precision of math.
const tinyExponent = -64

// roundedPower returns n to the power of m for a positive n that is not 1: the integer
// part of m by multiplication, the rest by package math.
func (n number) roundedPower(m number) (number, error) {
	if off := (number{r: n.minusOne()}); binaryExponent(off) < tinyExponent {
		return roundText(euler).roundedPower(number{r: off.r.Mul(off.r, m.r)})
	}
	times, _ := m.r.Float64()
	digits := naturalLog(n) * times / math.Ln10
	switch {
	case digits > MaxNumberDigits:
		return number{}, fmt.Errorf("the power is too large: it has %s digits; up to %d are possible", describeDigits(digits), MaxNumberDigits)
	case digits < -MaxNumberDigits:
		return number{}, fmt.Errorf("the power is too small: it has %s zeros behind the point; up to %d are possible", describeDigits(-digits), MaxNumberDigits)
	}
	integer := new(big.Int).Quo(m.r.Num(), m.r.Denom())
	result := floatPower(n.toFloat(precision+guard), integer)
	rest, _ := new(big.Rat).Sub(m.r, new(big.Rat).SetInt(integer)).Float64()
	if base, _ := n.r.Float64(); base > 0 && !math.IsInf(base, 0) {
		result.Mul(result, big.NewFloat(math.Pow(base, rest)))
	} else if rest != 0 { // of more than 308 digits
		power, err := roundText(euler).roundedPower(number{r: new(big.Rat).SetFloat64(rest * naturalLog(n))})
		if err != nil {
			return number{}, err
		}
		result.Mul(result, power.toFloat(precision))
	}
	return roundFloat(result)
}

// floatPower returns x to the power of m, by repeated squaring.
func floatPower(x *big.Float, m *big.Int) *big.Float {
	result := new(big.Float).SetPrec(x.Prec()).SetInt64(1)
	times := new(big.Int).Abs(m)
	for i := times.BitLen() - 1; i >= 0; i-- {
		result.Mul(result, result)
		if times.Bit(i) == 1 {
			result.Mul(result, x)
		}
	}
	if m.Sign() < 0 {
		return result.Quo(new(big.Float).SetPrec(x.Prec()).SetInt64(1), result)
	}
	return result
}

// describeDigits returns a number of digits for an error.
func describeDigits(digits float64) string {
	switch {
	case digits < 1e15:
		return "about " + strconv.FormatFloat(digits, 'f', 0, 64)
	case math.IsInf(digits, 0):
		return "more than 1e308"
	default:
		return "about " + strconv.FormatFloat(digits, 'g', 3, 64)
	}
}
