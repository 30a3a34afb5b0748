package tools

import (
	"errors"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
)

// function is a function of expressions.
type function struct {
	minArgs, maxArgs int // arguments
	example          string
	call             func(args []number) (number, error)
}

// newUnary returns a function of one argument.
func newUnary(name string, f func(number) (number, error)) function {
	return function{minArgs: 1, maxArgs: 1, example: name + "(2)", call: func(args []number) (number, error) { return f(args[0]) }}
}

func functionTable() map[string]function {
	return map[string]function{
		"abs":   newUnary("abs", absoluteValue),
		"ceil":  newUnary("ceil", func(n number) (number, error) { return fromInt(n.negate().floor()).negate(), nil }),
		"cos":   newUnary("cos", func(n number) (number, error) { return circularOf(n, math.Cos, 1) }),
		"exp":   newUnary("exp", exponentialOf),
		"floor": newUnary("floor", func(n number) (number, error) { return fromInt(n.floor()), nil }),
		"ln":    newUnary("ln", lnOf),
		"log":   newUnary("log", logOf),
		"max":   {minArgs: 1, maxArgs: MaxExpressionLength, example: "max(1, 2, 3)", call: func(args []number) (number, error) { return slices.MaxFunc(args, compareNumbers), nil }},
		"min":   {minArgs: 1, maxArgs: MaxExpressionLength, example: "min(1, 2, 3)", call: func(args []number) (number, error) { return slices.MinFunc(args, compareNumbers), nil }},
		"round": {minArgs: 1, maxArgs: 2, example: "round(2.345, 2)", call: roundNumber},
		"sin":   newUnary("sin", func(n number) (number, error) { return circularOf(n, math.Sin, 0) }),
		"sqrt":  newUnary("sqrt", squareRoot),
		"tan":   newUnary("tan", tangentOf),
	}
}

// functionNames returns "abs, ceil, …" for errors.
func functionNames() string {
	return strings.Join(slices.Sorted(maps.Keys(functionTable())), ", ")
}

// The constants, with more digits than precision.
const (
	pi    = "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899"
	euler = "2.71828182845904523536028747135266249775724709369995957496696762772407663035354759"
)

// constantValue returns the value of a constant's name.
func constantValue(name string) (number, bool) {
	switch name {
	case "pi":
		return roundText(pi), true
	case "e":
		return roundText(euler), true
	default:
		return number{}, false
	}
}

// roundText returns the number that the text of a constant names, rounded to precision.
func roundText(text string) number {
	f, _, err := big.ParseFloat(text, 10, precision, big.ToNearestEven)
	if err != nil {
		panic("calc: constant " + text + " is not a number")
	}
	r, _ := f.Rat(nil)
	return number{r: r}
}

func fromInt(i *big.Int) number { return number{r: new(big.Rat).SetInt(i), exact: true} }

func compareNumbers(a, b number) int { return a.r.Cmp(b.r) }

func absoluteValue(n number) (number, error) {
	return number{r: new(big.Rat).Abs(n.r), exact: n.exact}, nil
}

// roundNumber rounds to an integer, or to as many decimals as the second argument says.
func roundNumber(args []number) (number, error) {
	decimals := newInt(0)
	if len(args) == 2 {
		decimals = args[1]
	}
	limit := big.NewRat(100, 1)
	if !decimals.r.IsInt() || new(big.Rat).Abs(decimals.r).Cmp(limit) > 0 {
		return number{}, errors.New("the second argument of round is a whole number of decimals, from -100 to 100")
	}
	scale := raiseExactly(big.NewRat(10, 1), decimals.r.Num())
	result := new(big.Rat).SetInt(nearestInt(new(big.Rat).Mul(args[0].withoutRoundingError(), scale.r)))
	return number{r: result.Quo(result, scale.r), exact: true}.roundIfLarge()
}

// squareRoot is exact for the squares of fractions.
func squareRoot(n number) (number, error) {
	if n.r.Sign() < 0 {
		return number{}, errors.New("the square root of a negative number is not a real number")
	}
	num, denom := new(big.Int).Sqrt(n.r.Num()), new(big.Int).Sqrt(n.r.Denom())
	root := new(big.Rat).SetFrac(num, denom)
	if n.exact && new(big.Rat).Mul(root, root).Cmp(n.r) == 0 {
		return number{r: root, exact: true}, nil
	}
	return roundFloat(new(big.Float).SetPrec(precision).Sqrt(n.toFloat(precision + guard)))
}

func exponentialOf(n number) (number, error) {
	if n.exact && n.isZero() {
		return newInt(1), nil
	}
	return roundText(euler).roundedPower(n)
}

func lnOf(n number) (number, error) {
	switch {
	case n.r.Sign() <= 0:
		return number{}, errors.New("only numbers above zero have a logarithm")
	case n.exact && n.isOne():
		return newInt(0), nil
	default:
		return fromFloat(naturalLog(n))
	}
}

// logOf returns the decimal logarithm, exact for powers of ten.
func logOf(n number) (number, error) {
	if n.exact && n.r.Sign() > 0 {
		above, isPower := powerOfTen(n.r.Num())
		below, isInverse := powerOfTen(n.r.Denom())
		if isPower && isInverse {
			return newInt(above - below), nil
		}
	}
	if _, err := lnOf(n); err != nil {
		return number{}, err
	}
	return fromFloat(naturalLog(n) / math.Ln10)
}

// naturalLog returns the natural logarithm of a positive n of any size.
func naturalLog(n number) float64 {
	if off, _ := n.minusOne().Float64(); math.Abs(off) < 0.5 {
		return math.Log1p(off)
	}
	mantissa := new(big.Float)
	exponent := n.toFloat(precision).MantExp(mantissa)
	m, _ := mantissa.Float64()
	return math.Log(m) + float64(exponent)*math.Ln2
}

// powerOfTen returns how many zeros a power of ten has, and whether i is one.
func powerOfTen(i *big.Int) (int64, bool) {
	text := i.String()
	return int64(len(text) - 1), strings.TrimRight(text, "0") == "1"
}

// The sizes of angles, in bits.
const (
	maxAngle   = 169 // 50 digits
	smallAngle = 29  // package math reduces angles up to this size
)

// circularOf returns sin, cos or tan of n; atZero is the exact value for an exact zero.
func circularOf(n number, f func(float64) float64, atZero int64) (number, error) {
	if n.exact && n.isZero() {
		return newInt(atZero), nil
	}
	size := binaryExponent(n)
	if size > maxAngle {
		return number{}, errors.New("the angle is too large; up to 50 digits are possible")
	}
	angle := n.r
	if size > smallAngle { // subtract whole circles
		circle := new(big.Rat).Mul(roundText(pi).r, big.NewRat(2, 1))
		turns := nearestInt(new(big.Rat).Quo(angle, circle))
		angle = new(big.Rat).Sub(angle, circle.Mul(circle, new(big.Rat).SetInt(turns)))
	}
	x, _ := angle.Float64()
	result, err := fromFloat(f(x))
	if err != nil {
		return number{}, err
	}
	// sin(pi) is zero, although pi is rounded.
	if !n.exact && !result.isZero() && binaryExponent(result) < noise+max(0, size) {
		return number{r: new(big.Rat)}, nil
	}
	return result, nil
}

func tangentOf(n number) (number, error) {
	cos, err := circularOf(n, math.Cos, 1)
	if err != nil {
		return number{}, err
	}
	if cos.isZero() {
		return number{}, errors.New("tan is not defined at odd multiples of pi/2")
	}
	return circularOf(n, math.Tan, 0)
}
