package tools

import (
	"errors"
	"math"
	"math/big"
	"slices"
)

const (
	maxExactBits = 3322    // of a numerator or a denominator: 1,000 digits
	maxPowerBits = 1 << 16 // of one that is computed for a power, before it is rounded
	maxDecimals  = 50      // digits behind the point of an exact result
)

var (
	errTooLarge = errors.New("a number is too large; exact numbers have up to 1000 digits, rounded ones up to 308")
	errNotReal  = errors.New("the result is not a real number")
)

// number is an intermediate value: an exact fraction, which never changes, or a rounded float64 if r is nil.
type number struct {
	r *big.Rat
	f float64
}

// exactNumber returns a fraction, rounded if it is too large.
func exactNumber(r *big.Rat) (number, error) {
	if max(r.Num().BitLen(), r.Denom().BitLen()) <= maxExactBits {
		return number{r: r}, nil
	}
	f, _ := r.Float64()
	return roundedNumber(f)
}

func roundedNumber(f float64) (number, error) {
	switch {
	case math.IsInf(f, 0):
		return number{}, errTooLarge
	case math.IsNaN(f):
		return number{}, errNotReal
	}
	return number{f: f}, nil
}

func (n number) float() float64 {
	if n.r != nil {
		n.f, _ = n.r.Float64()
	}
	return n.f
}

// fraction returns the value.
func (n number) fraction() *big.Rat {
	if n.r != nil {
		return n.r
	}
	return new(big.Rat).SetFloat64(n.f)
}

// apply returns n operator m.
func (n number) apply(operator string, m number) (number, error) {
	if (operator == "/" || operator == "%") && m.fraction().Sign() == 0 {
		return number{}, errors.New("division by zero")
	}
	if n.r == nil || m.r == nil {
		return roundedNumber(applyRounded(operator, n.float(), m.float()))
	}
	result := new(big.Rat)
	switch operator {
	case "+":
		result.Add(n.r, m.r)
	case "-":
		result.Sub(n.r, m.r)
	case "*":
		result.Mul(n.r, m.r)
	case "/":
		result.Quo(n.r, m.r)
	case "%": // n - m*floor(n/m)
		result.Sub(n.r, result.Mul(m.r, floor(result.Quo(n.r, m.r))))
	}
	return exactNumber(result)
}

func applyRounded(operator string, x, y float64) float64 {
	switch operator {
	case "*":
		return x * y
	case "/":
		return x / y
	case "%":
		return x - y*math.Floor(x/y)
	case "-":
		return x - y
	}
	return x + y
}

// power returns n to the power of m; it is exact if the size of the fraction, which is estimated first, allows it.
func (n number) power(m number) (number, error) {
	if n.fraction().Sign() == 0 && m.fraction().Sign() < 0 {
		return number{}, errors.New("division by zero: zero to a negative power")
	}
	if n.r == nil || m.r == nil || !m.r.IsInt() {
		return roundedNumber(math.Pow(n.float(), m.float()))
	}
	times := new(big.Int).Abs(m.r.Num())
	bits := max(n.r.Num().BitLen(), n.r.Denom().BitLen()) - 1 // of 0, 1 and -1: none
	if float, _ := new(big.Float).SetInt(times).Float64(); float64(bits)*float > maxPowerBits {
		return roundedNumber(math.Pow(n.float(), m.float()))
	}
	num, denom := new(big.Int).Exp(n.r.Num(), times, nil), new(big.Int).Exp(n.r.Denom(), times, nil)
	if m.r.Sign() < 0 {
		num, denom = denom, num
	}
	return exactNumber(new(big.Rat).SetFrac(num, denom))
}

// floor returns the largest integer that is at most r.
func floor(r *big.Rat) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Div(r.Num(), r.Denom())) // Euclidean: with a positive divisor it rounds down
}

// calcFunction is a function of expressions with at least one argument.
type calcFunction struct {
	maxArgs int
	call    func(args []number) (number, error)
}

func calcFunctions() map[string]calcFunction {
	return map[string]calcFunction{
		"abs": {1, func(args []number) (number, error) {
			if args[0].fraction().Sign() < 0 {
				return args[0].apply("*", number{r: big.NewRat(-1, 1)})
			}
			return args[0], nil
		}},
		"floor": {1, func(args []number) (number, error) { return exactNumber(floor(args[0].fraction())) }},
		"ceil": {1, func(args []number) (number, error) {
			r := floor(new(big.Rat).Neg(args[0].fraction()))
			return exactNumber(r.Neg(r))
		}},
		"max":   {MaxExpressionLength, func(args []number) (number, error) { return slices.MaxFunc(args, compareNumbers), nil }},
		"min":   {MaxExpressionLength, func(args []number) (number, error) { return slices.MinFunc(args, compareNumbers), nil }},
		"round": {2, roundNumber},
		"sqrt":  {1, squareRoot},
		"cos":   floatFunction(1e9, math.Cos),
		"sin":   floatFunction(1e9, math.Sin),
		"tan":   floatFunction(1e9, math.Tan),
		"exp":   floatFunction(math.MaxFloat64, math.Exp),
		"ln":    floatFunction(math.MaxFloat64, math.Log),
		"log":   floatFunction(math.MaxFloat64, math.Log10),
	}
}

func compareNumbers(a, b number) int { return a.fraction().Cmp(b.fraction()) }

// floatFunction returns a function of package math, which rounds, of arguments up to a limit.
func floatFunction(limit float64, f func(float64) float64) calcFunction {
	return calcFunction{1, func(args []number) (number, error) {
		x := args[0].float()
		if math.Abs(x) > limit {
			return number{}, errors.New("the number is too large for this function")
		}
		result := f(x)
		if math.IsInf(result, -1) { // a logarithm of zero
			return number{}, errNotReal
		}
		return roundedNumber(result)
	}}
}

// squareRoot is exact for the squares of fractions.
func squareRoot(args []number) (number, error) {
	if r := args[0].r; r != nil && r.Sign() >= 0 {
		root := new(big.Rat).SetFrac(new(big.Int).Sqrt(r.Num()), new(big.Int).Sqrt(r.Denom()))
		if new(big.Rat).Mul(root, root).Cmp(r) == 0 {
			return number{r: root}, nil
		}
	}
	return roundedNumber(math.Sqrt(args[0].float()))
}

// roundNumber rounds to an integer, or to as many decimals as the second argument says; halves away from zero.
func roundNumber(args []number) (number, error) {
	decimals := new(big.Rat)
	if len(args) == 2 {
		decimals = args[1].fraction()
	}
	if !decimals.IsInt() || new(big.Rat).Abs(decimals).Cmp(big.NewRat(100, 1)) > 0 {
		return number{}, errors.New("the second argument of round is a whole number of decimals, from -100 to 100")
	}
	scale, err := number{r: big.NewRat(10, 1)}.power(number{r: decimals})
	if err != nil {
		return number{}, err
	}
	scaled := new(big.Rat).Mul(args[0].fraction(), scale.r)
	half := big.NewRat(int64(scaled.Sign()), 2)
	scaled.Add(scaled, half)
	whole := new(big.Rat).SetInt(new(big.Int).Quo(scaled.Num(), scaled.Denom()))
	return exactNumber(whole.Quo(whole, scale.r))
}
