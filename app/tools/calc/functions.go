package calc

import (
	"errors"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// function is what may be called by name.
type function struct {
	least, most int // arguments
	example     string
	call        func(args []number) (number, error)
}

// unary returns a function of one argument.
func unary(name string, f func(number) (number, error)) function {
	return function{least: 1, most: 1, example: name + "(2)", call: func(args []number) (number, error) { return f(args[0]) }}
}

func functions() map[string]function {
	return map[string]function{
		"abs":   unary("abs", absolute),
		"ceil":  unary("ceil", func(n number) (number, error) { return whole(n.negated().floor()).negated(), nil }),
		"cos":   unary("cos", func(n number) (number, error) { return circular(n, cosine, 1) }),
		"exp":   unary("exp", exponentialOf),
		"floor": unary("floor", func(n number) (number, error) { return whole(n.floor()), nil }),
		"ln":    unary("ln", lnOf),
		"log":   unary("log", logOf),
		"max":   {least: 1, most: MaxLength, example: "max(1, 2, 3)", call: func(args []number) (number, error) { return slices.MaxFunc(args, compare), nil }},
		"min":   {least: 1, most: MaxLength, example: "min(1, 2, 3)", call: func(args []number) (number, error) { return slices.MinFunc(args, compare), nil }},
		"round": {least: 1, most: 2, example: "round(2.345, 2)", call: round},
		"sin":   unary("sin", func(n number) (number, error) { return circular(n, sine, 0) }),
		"sqrt":  unary("sqrt", squareRoot),
		"tan":   unary("tan", tangent),
	}
}

// functionNames returns "abs, ceil, …".
func functionNames() string {
	return strings.Join(slices.Sorted(maps.Keys(functions())), ", ")
}

// constant returns the value of a constant's name.
func constant(name string) (number, bool) {
	var f *big.Float
	switch name {
	case "pi":
		f = pi(precision)
	case "e":
		f = exponential(integer(precision, 1))
	default:
		return number{}, false
	}
	r, _ := f.Rat(nil)
	return number{r: r}, true
}

func whole(i *big.Int) number { return number{r: new(big.Rat).SetInt(i), exact: true} }

func compare(a, b number) int { return a.r.Cmp(b.r) }

func absolute(n number) (number, error) {
	return number{r: new(big.Rat).Abs(n.r), exact: n.exact}, nil
}

// round rounds to an integer, or to as many decimals as the second argument says.
func round(args []number) (number, error) {
	decimals := newInt(0)
	if len(args) == 2 {
		decimals = args[1]
	}
	limit := big.NewRat(100, 1)
	if !decimals.r.IsInt() || new(big.Rat).Abs(decimals.r).Cmp(limit) > 0 {
		return number{}, errors.New("the second argument of round is a whole number of decimals, from -100 to 100")
	}
	scale := raise(big.NewRat(10, 1), decimals.r.Num())
	result := new(big.Rat).SetInt(nearestInt(new(big.Rat).Mul(args[0].clean(), scale.r)))
	return number{r: result.Quo(result, scale.r), exact: true}.bounded()
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
	return rounded(new(big.Float).SetPrec(precision).Sqrt(n.float(precision + guard)))
}

func exponentialOf(n number) (number, error) {
	e, _ := constant("e")
	if n.exact && n.isZero() {
		return newInt(1), nil
	}
	return e.roundedPower(n)
}

func lnOf(n number) (number, error) {
	switch {
	case n.r.Sign() <= 0:
		return number{}, errors.New("only numbers above zero have a logarithm")
	case n.exact && n.r.Cmp(big.NewRat(1, 1)) == 0:
		return newInt(0), nil
	default:
		return rounded(naturalLog(n))
	}
}

// logOf is the decimal logarithm, exact for powers of ten.
func logOf(n number) (number, error) {
	if n.exact && n.r.Sign() > 0 {
		above, isPower := tens(n.r.Num())
		below, isInverse := tens(n.r.Denom())
		if isPower && isInverse {
			return newInt(above - below), nil
		}
	}
	ln, err := lnOf(n)
	if err != nil {
		return number{}, err
	}
	ten := naturalLog(newInt(10))
	return rounded(ten.Quo(ln.float(ten.Prec()), ten))
}

// tens returns how many zeros a power of ten has, and whether i is one.
func tens(i *big.Int) (int64, bool) {
	text := i.String()
	return int64(len(text) - 1), strings.TrimRight(text, "0") == "1"
}

// maxAngle bounds the arguments of sin, cos and tan, in bits: 100 digits.
const maxAngle = 332

// circular returns sin or cos; atZero is the exact value for an exact zero.
func circular(n number, f func(*big.Float) *big.Float, atZero int64) (number, error) {
	if n.exact && n.isZero() {
		return newInt(atZero), nil
	}
	size := exponent(n)
	if size > maxAngle {
		return number{}, errors.New("the angle is too large; up to 100 digits are possible")
	}
	// Turn back by whole circles: what is left is at most π on either side.
	prec := uint(precision + 2*guard + max(0, size))
	circle := pi(prec)
	circle.Add(circle, circle)
	x := n.float(prec)
	turns, _ := new(big.Float).SetPrec(prec).Quo(x, circle).Rat(nil)
	x.Sub(x, circle.Mul(circle, new(big.Float).SetPrec(prec).SetInt(nearestInt(turns))))
	result, err := rounded(f(x))
	if err != nil {
		return number{}, err
	}
	// sin(pi) is zero, though pi is not quite π.
	if !n.exact && !result.isZero() && exponent(result) < noise+max(0, size) {
		return number{r: new(big.Rat)}, nil
	}
	return result, nil
}

func tangent(n number) (number, error) {
	sin, err := circular(n, sine, 0)
	if err != nil {
		return number{}, err
	}
	cos, err := circular(n, cosine, 1)
	if err != nil {
		return number{}, err
	}
	if cos.isZero() {
		return number{}, errors.New("tan is not defined at odd multiples of pi/2")
	}
	return sin.apply("/", cos)
}
