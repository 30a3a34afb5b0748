package tools

import (
	"fmt"
	"unicode/utf8"
)

// Bounds of an expression.
const (
	MaxExpressionLength = 1000 // characters
	MaxExpressionDepth  = 100  // parentheses and powers inside each other
	MaxNumberDigits     = 6000 // of an intermediate number: in its integer part, or behind the point
)

// EvaluateExpression returns the value of an arithmetic expression in decimal notation: exactly
// if it is a fraction, else to 15 digits with the prefix "≈ ". Errors say what is wrong and, if
// possible, at which character.
//
// An expression consists of
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
// 1/3*3 is 1. Irrational numbers, such as sqrt(2) or sin(1), are rounded, and so is
// everything computed from them; such results begin with "≈" and have 15 digits. ln,
// log, sin, cos, tan and fractional powers use package math.
//
// Every evaluation is short: MaxExpressionLength, MaxExpressionDepth and MaxNumberDigits bound the work before
// it starts.
func EvaluateExpression(expression string) (string, error) {
	if n := utf8.RuneCountInString(expression); n > MaxExpressionLength {
		return "", fmt.Errorf("the expression has %d characters; at most %d are possible", n, MaxExpressionLength)
	}
	tokens, err := scanTokens(expression)
	if err != nil {
		return "", err
	}
	p := &parser{tokens: tokens}
	result, err := p.parseAll()
	if err != nil {
		return "", err
	}
	return formatNumber(result), nil
}
