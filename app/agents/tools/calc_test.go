package tools_test

import (
	"strings"
	"testing"

	"bobbin/app/agents/tools"
	"bobbin/tests/compare"
)

func TestEvaluate(t *testing.T) {
	t.Parallel()
	const known = "; the functions are abs, ceil, cos, exp, floor, ln, log, max, min, round, sin, sqrt, tan; the constants are pi and e"
	const tooLarge = "a number is too large; exact numbers have up to 1000 digits, rounded ones up to 308"
	tests := map[string]string{ // a value, or an error
		// Operators, and how they bind.
		"2+3*4": "14", "(2+3)*4": "20", "10-4-3": "3", "2/4/2": "0.25", "2^3^2": "512", "-2^2": "-4", "2^-1": "0.5", "--3": "3", "2*-3": "-6",
		"7%3": "1", "-7%3": "2", "7%-3": "-2", "7.5%2": "1.5", "2*7%4": "2", "2**3": "8", "3×4÷2−1": "5", "2·3": "6", " 1 +\t1\n": "2",
		// Numbers.
		".5": "0.5", "5.": "5", "2E-3": "0.002", "6.02e+2": "602", "007": "7", "-0": "0", "1e0001": "10",
		// Exact fractions, large and small numbers.
		"0.1+0.2": "0.3", "1/3*3": "1", "1/3": "≈ 0.333333333333333", "199.99*0.19": "37.9981", "1/10^51": "1e-51", "10^999": "1" + strings.Repeat("0", 999),
		"10^20/7": "≈ 1.42857142857143e+19", "1.0005^3650": "≈ 6.19996658193679", "(1+0.05/12)^360": "≈ 4.46774431400613", "3^-9000": "≈ 0",
		"0^0": "1", "0^5": "0", "(-2)^-3": "-0.125", "(-1)^(10^900)": "1", "1^0.5": "≈ 1", "2^0.5": "≈ 1.4142135623731",
		// Functions.
		"sqrt(2.25)": "1.5", "sqrt(2)": "≈ 1.4142135623731", "abs(-3.5)": "3.5", "abs(-pi)": "≈ 3.14159265358979",
		"floor(-2.1)": "-3", "ceil(2.1)": "3", "round(-2.5)": "-3", "round(2.345, 2)": "2.35", "round(1234, -2)": "1200", "round(pi, 4)": "3.1416",
		"min(3, 1, 2)": "1", "MAX(1/3, 0)": "≈ 0.333333333333333", "exp(1)": "≈ 2.71828182845905", "ln(e)": "≈ 1", "log(1000)": "≈ 3",
		"cos(pi)": "≈ -1", "tan(pi/4)": "≈ 1", "sin(1e-200)": "≈ 1e-200", "2*PI": "≈ 6.28318530717959",
		// Errors.
		"": "the expression is empty", " ": "the expression is empty", "2+": "a number is missing before the end", "*2": `a number is missing before "*" at character 1`,
		"()": "the parenthesis at character 1 must contain one number, not 0", "(1,2)": "the parenthesis at character 1 must contain one number, not 2",
		"2 3": `there is no operator before "3" at character 3`, "2pi": `there is no operator before "pi" at character 2`, "1.2.3": `there is no operator before ".3" at character 4`,
		"5 €": `there is no operator before "€" at character 3`, ".": `a number is missing before "." at character 1`, "max(1,)": `a number is missing before ")" at character 7`,
		"((2)": "the parenthesis at character 1 is not closed before the end", "max(1 2)": `the parenthesis at character 4 is not closed before "2" at character 7`,
		"2)": `")" at character 2 has no opening parenthesis`, "1,000": `"," at character 2 is outside of a function; write 1000 for 1,000 and 0.5 for 0,5`,
		"5% * 2": `% is the remainder of a division, and a number must follow it, not "*" at character 4; write 15/100 for 15 percent`,
		"x+1":    `"x" at character 1 is unknown` + known, "sqrt 2": "the arguments of sqrt are missing; write them in parentheses, as in sqrt(2)",
		"sqrt()": "sqrt does not take 0 arguments; write it as in sqrt(2)", "sin(1,2)": "sin does not take 2 arguments; write it as in sin(2)",
		"1/0": "division by zero", "2^(1%0)": "division by zero", "-(1/(2-2))": "division by zero", "0^-0.5": "division by zero: zero to a negative power",
		"sqrt(-1)": "the result is not a real number", "(-8)^(1/3)": "the result is not a real number", "ln(0)": "the result is not a real number",
		"round(1, 0.5)": "the second argument of round is a whole number of decimals, from -100 to 100", "sin(10^51)": "the number is too large for this function",
		"9^9^9^9": tooLarge, "10^1e900": tooLarge, "exp(20000)": tooLarge, "10^1001": tooLarge, "10^900/7": tooLarge, "1e99999999999999999": tooLarge,
		// Bounds.
		strings.Repeat("1+", 499) + "10":                             "509",
		strings.Repeat("1×", 500) + "1":                              "the expression has 1001 characters; at most 1000 are possible",
		strings.Repeat("(", 100) + "1" + strings.Repeat(")", 100):    "1",
		strings.Repeat("abs(", 101) + "1" + strings.Repeat(")", 101): "the expression is nested more than 100 deep",
		strings.Repeat("1^", 101) + "1":                              "the expression is nested more than 100 deep",
		strings.Repeat("-", 999) + "1":                               "-1",
	}
	for expression, want := range tests {
		got, err := tools.EvaluateExpression(expression)
		if err != nil {
			got = err.Error()
		}
		compare.Equal(t, expression, want, got)
	}
}

// TestEvaluateEndsSoon evaluates the most work that fits into MaxExpressionLength. Each takes some
// ten milliseconds; without the bounds it would be hours, and the tests' time limit.
func TestEvaluateEndsSoon(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"1/3^900+", "1/3^9000*", "1/7^999+1/11^999+", "1e9999%3+", "round(1e90/7,9)+", "9^9^4+", "1.01^9999*", "ceil(1e999)%7^7+"} {
		got, err := tools.EvaluateExpression(strings.Repeat(piece, (tools.MaxExpressionLength-1)/len(piece)) + "1")
		compare.True(t, (err == nil) != (got == ""), "%s: got %q and error %v, want one of them", piece, got, err)
	}
}
