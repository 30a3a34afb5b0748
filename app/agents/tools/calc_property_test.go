package tools_test

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bobbin/app/agents/tools"
	"bobbin/tests/seed"
)

// tree is a random expression and its value, computed beside the evaluator.
type tree struct {
	text  string
	value *big.Rat // nil = it divides by zero
}

// anyTree draws sums, products and quotients of small decimals, in parentheses.
func anyTree(t *rapid.T, depth int) tree {
	if depth == 0 || rapid.IntRange(0, 3).Draw(t, "leaf") == 0 {
		text := fmt.Sprintf("%d.%02d", rapid.IntRange(0, 99).Draw(t, "whole"), rapid.IntRange(0, 99).Draw(t, "hundredths"))
		value, _ := new(big.Rat).SetString(text)
		return tree{text: text, value: value}
	}
	left, right := anyTree(t, depth-1), anyTree(t, depth-1)
	operator := rapid.SampledFrom([]string{"+", "-", "*", "/"}).Draw(t, "operator")
	result := tree{text: "(" + left.text + operator + right.text + ")"}
	if left.value == nil || right.value == nil || operator == "/" && right.value.Sign() == 0 {
		return result
	}
	switch operator {
	case "+":
		result.value = new(big.Rat).Add(left.value, right.value)
	case "-":
		result.value = new(big.Rat).Sub(left.value, right.value)
	case "*":
		result.value = new(big.Rat).Mul(left.value, right.value)
	case "/":
		result.value = new(big.Rat).Quo(left.value, right.value)
	}
	return result
}

// TestFractionsAreExact compares with math/big: what is shown without "≈" is the
// value itself, what is shown with it is right to 14 digits.
func TestFractionsAreExact(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		expression := anyTree(t, 5)
		got, err := tools.EvaluateExpression(expression.text)
		switch {
		case len(expression.text) > tools.MaxExpressionLength:
			return
		case expression.value == nil:
			if err == nil || err.Error() != "division by zero" {
				t.Fatalf("%s: got %q, error %v, want division by zero", expression.text, got, err)
			}
			return
		case err != nil:
			t.Fatalf("%s: got error %v, want %s", expression.text, err, expression.value)
		}
		digits, isRounded := strings.CutPrefix(got, "≈ ")
		value, ok := new(big.Rat).SetString(digits)
		if !ok {
			t.Fatalf("%s: got %q, want a number", expression.text, got)
		}
		off := new(big.Rat).Sub(value, expression.value)
		if !isRounded && off.Sign() != 0 {
			t.Fatalf("%s: got %s, want %s", expression.text, got, expression.value)
		}
		allowed := new(big.Rat).Mul(expression.value, big.NewRat(1, 1e14))
		if off.Abs(off).Cmp(allowed.Abs(allowed)) > 0 {
			t.Fatalf("%s: got %s, want %s to 14 digits", expression.text, got, expression.value.FloatString(20))
		}
	})
}

// TestFunctionsAgreeWithMath compares with package math, within what float64 holds.
func TestFunctionsAgreeWithMath(t *testing.T) {
	t.Parallel()
	functions := map[string]struct {
		f         func(float64) float64
		low, high float64
	}{
		"sin": {math.Sin, -1e6, 1e6}, "cos": {math.Cos, -1e6, 1e6}, "tan": {math.Tan, -100, 100}, "exp": {math.Exp, -700, 700},
		"ln": {math.Log, 1e-300, 1e300}, "log": {math.Log10, 1e-300, 1e300}, "sqrt": {math.Sqrt, 0, 1e300},
		"floor": {math.Floor, -1e15, 1e15}, "ceil": {math.Ceil, -1e15, 1e15}, "round": {math.Round, -1e15, 1e15}, "abs": {math.Abs, -1e300, 1e300},
	}
	for name, function := range functions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed.Check(t, func(t *rapid.T) {
				x := rapid.Float64Range(function.low, function.high).Draw(t, "x")
				if math.Abs(x) < 1e-300 {
					return
				}
				want := function.f(x)
				got := value(t, name+"("+exactly(x)+")")
				if math.Abs(got-want) > 1e-13*max(math.Abs(want), 1) {
					t.Fatalf("%s(%v): got %v, want %v", name, x, got, want)
				}
			})
		})
	}
	t.Run("power", func(t *testing.T) {
		t.Parallel()
		seed.Check(t, func(t *rapid.T) {
			x, y := rapid.Float64Range(0.01, 100).Draw(t, "x"), rapid.Float64Range(-50, 50).Draw(t, "y")
			want := math.Pow(x, y)
			got := value(t, "("+exactly(x)+")^("+exactly(y)+")")
			if math.Abs(got-want) > 1e-13*want {
				t.Fatalf("%v^%v: got %v, want %v", x, y, got, want)
			}
		})
	})
}

// exactly returns all digits of x that matter, not the fewest that tell it apart.
func exactly(x float64) string { return strconv.FormatFloat(x, 'g', 60, 64) }

// value evaluates an expression whose value float64 can hold.
func value(t *rapid.T, expression string) float64 {
	t.Helper()
	text, err := tools.EvaluateExpression(expression)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	got, err := strconv.ParseFloat(strings.TrimPrefix(text, "≈ "), 64)
	if err != nil {
		t.Fatalf("%s: got %q, want a number", expression, text)
	}
	return got
}

// FuzzEvaluate: any text ends soon, in a number that is an expression itself, or
// in an error that says something.
func FuzzEvaluate(f *testing.F) {
	for _, seed := range []string{"2+2", "9^9^9^9", "max(1, 2)%3", "sin(pi)/tan(1e99)", "((((1", "1e-6000^.5", "≈ 0.3", "round(ln(2), -3)", "2**-.5e1", "\xff", "1,2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		got, err := tools.EvaluateExpression(expression)
		if err != nil {
			if got != "" || err.Error() == "" {
				t.Fatalf("%q: got %q, error %v, want an error alone, in words", expression, got, err)
			}
			return
		}
		text := strings.TrimPrefix(got, "≈ ")
		value, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%q: got %q, want a number", expression, got)
		}
		if len(text) > tools.MaxExpressionLength {
			return
		}
		again, err := tools.EvaluateExpression(text)
		if same, ok := new(big.Rat).SetString(strings.TrimPrefix(again, "≈ ")); err != nil || !ok || same.Cmp(value) != 0 {
			t.Fatalf("%q: got %q, which is %q (error %v) when evaluated, want itself", expression, got, again, err)
		}
	})
}
