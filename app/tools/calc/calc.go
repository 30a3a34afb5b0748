// Package calc evaluates arithmetic expressions: exactly where the result is a
// fraction, to 15 digits where it is not.
//
// An expression is made of
//
//	1  2.5  .5  6.02e23               numbers
//	+  -  *  /  %  ^  ( )             also ** for ^, and the signs × · ÷ −
//	sqrt abs round floor ceil min max sin cos tan ln log exp
//	pi  e
//
// ^ binds tightest and to the right (2^3^2 = 512, -2^2 = -4), then * / %, then
// + and -. a % b has the sign of b. round takes a number of decimals as its
// second argument and rounds halves away from zero; angles are in radians; log is
// the decimal logarithm, ln the natural one. 0^0 is 1.
//
// Numbers are fractions of any size (math/big.Rat), so that 0.1 + 0.2 is 0.3 and
// 1/3*3 is 1. What cannot be a fraction, such as sqrt(2) or sin(1), is rounded to
// 15 digits and so is everything made from it; results say so by "≈".
//
// Every evaluation ends soon: MaxLength, MaxDepth and MaxDigits bound it, and are
// checked before the work is done.
package calc

import (
	"fmt"
	"unicode/utf8"
)

// Bounds of an expression.
const (
	MaxLength = 1000 // characters
	MaxDepth  = 100  // parentheses and powers inside each other
	MaxDigits = 6000 // of a number on the way: in its integer part, or behind the point
)

// Evaluate returns the value of the expression in decimal notation, with "≈ "
// before it if it is rounded. Errors say in a sentence what is wrong and, where
// there is one, at which character.
func Evaluate(expression string) (string, error) {
	if n := utf8.RuneCountInString(expression); n > MaxLength {
		return "", fmt.Errorf("the expression has %d characters; at most %d are possible", n, MaxLength)
	}
	tokens, err := scan(expression)
	if err != nil {
		return "", err
	}
	p := &parser{tokens: tokens}
	result, err := p.all()
	if err != nil {
		return "", err
	}
	return format(result), nil
}
