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

// number is an intermediate value, which never changes: an exact fraction, or one that was rounded to float64.
type number struct {
	*big.Rat
	rounded bool
}

// newNumber returns a value. It is rounded if it is too large, or computed from rounded ones.
func newNumber(r *big.Rat, rounded bool) (number, error) {
	if !rounded && max(r.Num().BitLen(), r.Denom().BitLen()) <= maxExactBits {
		return number{r, false}, nil
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
	return number{new(big.Rat).SetFloat64(f), true}, nil
}

func (n number) float() float64 {
	f, _ := n.Float64()
	return f
}

// apply returns n operator m.
func (n number) apply(operator string, m number) (number, error) {
	if (operator == "/" || operator == "%") && m.Sign() == 0 {
		return number{}, errors.New("division by zero")
	}
	result := new(big.Rat)
	switch operator {
	case "+":
		result.Add(n.Rat, m.Rat)
	case "-":
		result.Sub(n.Rat, m.Rat)
	case "*":
		result.Mul(n.Rat, m.Rat)
	case "/":
		result.Quo(n.Rat, m.Rat)
	case "%": // n - m*floor(n/m)
		result.Sub(n.Rat, result.Mul(m.Rat, floor(result.Quo(n.Rat, m.Rat))))
	}
	return newNumber(result, n.rounded || m.rounded)
}

// power returns n to the power of m; it is exact if the size of the fraction, which is estimated first, allows it.
func (n number) power(m number) (number, error) {
	if n.Sign() == 0 && m.Sign() < 0 {
		return number{}, errors.New("division by zero: zero to a negative power")
	}
	times := new(big.Int).Abs(m.Num())
	bits := max(n.Num().BitLen(), n.Denom().BitLen()) - 1 // of 0, 1 and -1: none
	float, _ := new(big.Float).SetInt(times).Float64()
	if n.rounded || m.rounded || !m.IsInt() || float64(bits)*float > maxPowerBits {
		return roundedNumber(math.Pow(n.float(), m.float()))
	}
	num, denom := new(big.Int).Exp(n.Num(), times, nil), new(big.Int).Exp(n.Denom(), times, nil)
	if m.Sign() < 0 {
		num, denom = denom, num
	}
	return newNumber(new(big.Rat).SetFrac(num, denom), false)
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
			return number{new(big.Rat).Abs(args[0].Rat), args[0].rounded}, nil
		}},
		"floor": {1, func(args []number) (number, error) { return newNumber(floor(args[0].Rat), false) }},
		"ceil": {1, func(args []number) (number, error) {
			r := floor(new(big.Rat).Neg(args[0].Rat))
			return newNumber(r.Neg(r), false)
		}},
		"max":   {MaxExpressionLength, func(args []number) (number, error) { return slices.MaxFunc(args, compareNumbers), nil }},
		"min":   {MaxExpressionLength, func(args []number) (number, error) { return slices.MinFunc(args, compareNumbers), nil }},
		"round": {2, roundNumber},
		"sqrt": {1, func(args []number) (number, error) { // exact for the squares of fractions
			if n := args[0]; !n.rounded && n.Sign() >= 0 {
				root := new(big.Rat).SetFrac(new(big.Int).Sqrt(n.Num()), new(big.Int).Sqrt(n.Denom()))
				if new(big.Rat).Mul(root, root).Cmp(n.Rat) == 0 {
					return number{root, false}, nil
				}
			}
			return roundedNumber(math.Sqrt(args[0].float()))
		}},
		"cos": floatFunction(1e9, math.Cos),
		"sin": floatFunction(1e9, math.Sin),
		"tan": floatFunction(1e9, math.Tan),
		"exp": floatFunction(math.MaxFloat64, math.Exp),
		"ln":  floatFunction(math.MaxFloat64, math.Log),
		"log": floatFunction(math.MaxFloat64, math.Log10),
	}
}

func compareNumbers(a, b number) int { return a.Cmp(b.Rat) }

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

// roundNumber rounds to an integer, or to as many decimals as the second argument says; halves away from zero.
func roundNumber(args []number) (number, error) {
	decimals := new(big.Rat)
	if len(args) == 2 {
		decimals = args[1].Rat
	}
	if !decimals.IsInt() || new(big.Rat).Abs(decimals).Cmp(big.NewRat(100, 1)) > 0 {
		return number{}, errors.New("the second argument of round is a whole number of decimals, from -100 to 100")
	}
	scale, err := number{big.NewRat(10, 1), false}.power(number{decimals, false})
	if err != nil {
		return number{}, err
	}
	scaled := new(big.Rat).Mul(args[0].Rat, scale.Rat)
	half := big.NewRat(int64(scaled.Sign()), 2)
	scaled.Add(scaled, half)
	whole := new(big.Rat).SetInt(new(big.Int).Quo(scaled.Num(), scaled.Denom()))
	return newNumber(whole.Quo(whole, scale.Rat), false)
}
