package tools_test

import (
	"strings"
	"testing"

	"bobbin/app/agents/tools"
)

func TestEvaluate(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		// Operators, and how they bind.
		"2+2": "4", "2+3*4": "14", "(2+3)*4": "20", "10-4-3": "3", "2/4/2": "0.25", "2^3^2": "512", "-2^2": "-4", "2^-1": "0.5",
		"--3": "3", "+-+3": "-3", "2*-3": "-6", "-(2-5)": "3", "7%3": "1", "-7%3": "2", "7%-3": "-2", "7.5%2": "1.5", "2*7%4": "2",
		"2**3": "8", "3×4÷2−1": "5", "2·3": "6", " 1 +\t1\n": "2",
		// Numbers.
		"1.50": "1.5", ".5": "0.5", "5.": "5", "2e3": "2000", "2E-3": "0.002", "6.02e+2": "602", "007": "7", "0": "0", "-0": "0",
		// Exact fractions.
		"0.1+0.2": "0.3", "1/3*3": "1", "1/3+1/6": "0.5", "1/3": "≈ 0.333333333333333", "2/3": "≈ 0.666666666666667", "-1/7": "≈ -0.142857142857143",
		"0.1^10": "0.0000000001", "199.99*0.19": "37.9981", "1/10^50": "0." + strings.Repeat("0", 49) + "1", "1/10^51": "1e-51",
		// Large and small.
		"2^100": "1267650600228229401496703205376", "10^999": "1" + strings.Repeat("0", 999), "10^1001": "1e1001", "3/10^2000": "3e-2000",
		"10^20/7": "≈ 14285714285714285714", "10^30/7": "≈ 1.42857142857143e29", "1/3/10^6": "≈ 0.000000333333333333333", "1/3/10^7": "≈ 3.33333333333333e-8",
		"0.5^300": "≈ 4.90909346529773e-91", "1.0005^3650": "≈ 6.19996658193679", "(-1.5)^10001": "≈ -1.22654028201364e1761", "2^1000/2^990": "1024",
		"1e-6000*1e-6000": "≈ 0", ".01e-6000": "≈ 0", "0.001e6002": "1e5999",
		// Powers.
		"0^0": "1", "0^5": "0", "0^0.5": "0", "1^(10^400+0.5)": "1", "(-1)^1e6000": "1", "(-1)^(1e6000+1)": "-1", "(-2)^3": "-8", "(-2)^-3": "-0.125",
		"4^0.5": "2", "(4/9)^0.5*3": "2", "8^(1/3)": "≈ 2", "2^0.5": "≈ 1.4142135623731", "(1+0.05/12)^360.5": "≈ 4.4770424391814",
		// Functions.
		"sqrt(16)": "4", "sqrt(2.25)": "1.5", "sqrt(2)": "≈ 1.4142135623731", "sqrt(2)^2-2": "≈ 0", "sqrt(0)": "0", "sqrt(1e-5000)": "1e-2500",
		"abs(-3.5)": "3.5", "abs(2)": "2", "floor(2.7)": "2", "floor(-2.1)": "-3", "ceil(2.1)": "3", "ceil(-2.1)": "-2", "floor(sqrt(2)^2)": "2",
		"floor(10*sin(pi/6))": "5", "round(2.5)": "3", "round(-2.5)": "-3", "round(2.4)": "2", "round(2.345, 2)": "2.35", "round(1234, -2)": "1200", "round(pi, 4)": "3.1416",
		"min(3, 1, 2)": "1", "max(3, 1, 2)": "3", "max(1,000)": "1", "MAX(1)": "1", "max(1/3, 0)": "≈ 0.333333333333333",
		"exp(0)": "1", "exp(1)": "≈ 2.71828182845905", "exp(1000)": "≈ 1.97007111401705e434", "exp(-1)": "≈ 0.367879441171442", "exp(1e-6000)": "≈ 1",
		"ln(1)": "0", "ln(exp(1e-6000))": "≈ 0", "ln(e)": "≈ 1", "ln(2)": "≈ 0.693147180559945", "ln(1+1e-40)": "≈ 1e-40", "ln(1e5000)": "≈ 11512.9254649702", "ln(0.5)": "≈ -0.693147180559945",
		"log(1000)": "3", "log(0.001)": "-3", "log(1)": "0", "log(2)": "≈ 0.301029995663981", "log(2000)-log(2)": "≈ 3",
		"sin(0)": "0", "cos(0)": "1", "tan(0)": "0", "sin(1)": "≈ 0.841470984807897", "cos(1)": "≈ 0.54030230586814", "tan(1)": "≈ 1.5574077246549",
		"sin(pi)": "≈ 0", "cos(pi)": "≈ -1", "cos(pi/2)": "≈ 0", "tan(pi/4)": "≈ 1", "sin(10^50)": "≈ -0.78967249342931",
		"sin(1e-200)": "≈ 1e-200", "pi": "≈ 3.14159265358979", "e": "≈ 2.71828182845905", "2*PI": "≈ 6.28318530717959",
	}
	for expression, want := range tests {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			got, err := tools.EvaluateExpression(expression)
			if err != nil || got != want {
				t.Errorf("got %q, error %v, want %q", got, err, want)
			}
		})
	}
}

func TestEvaluateErrors(t *testing.T) {
	t.Parallel()
	const known = "; the functions are abs, ceil, cos, exp, floor, ln, log, max, min, round, sin, sqrt, tan; the constants are pi and e"
	tests := map[string]string{
		"":         "the expression is empty",
		" ":        "the expression is empty",
		"2+":       "a number is missing before the end",
		"*2":       `a number is missing before "*" at character 1`,
		"()":       `a number is missing before ")" at character 2`,
		"2 3":      `there is no operator before "3" at character 3`,
		"2(3)":     `there is no operator before "(" at character 2`,
		"2pi":      `there is no operator before "pi" at character 2`,
		"1e":       `there is no operator before "e" at character 2`,
		"1.2.3":    `there is no operator before ".3" at character 4`,
		".":        `"." at character 1 is not a number`,
		"(2":       "the parenthesis at character 1 is not closed before the end",
		"((2)":     "the parenthesis at character 1 is not closed before the end",
		"max(1":    "the parenthesis at character 4 is not closed before the end",
		"max(1 2)": `the parenthesis at character 4 is not closed before "2" at character 7`,
		"2)":       `")" at character 2 has no opening parenthesis`,
		"1,000":    `"," at character 2 is outside of a function; write 1000 for 1,000 and 0.5 for 0,5`,
		"2 $ 3":    `"$" at character 3 is not part of an expression`,
		"5 €":      `"€" at character 3 is not part of an expression`,
		"200*15%":  "after % comes a number, as it is the remainder of a division, not the end; write 15/100 for 15 percent",
		"5% * 2":   `after % comes a number, as it is the remainder of a division, not "*" at character 4; write 15/100 for 15 percent`,
		"x+1":      `"x" at character 1 is unknown` + known,
		"foo(1)":   `"foo" at character 1 is unknown` + known,
		"sqrt 2":   "the arguments of sqrt are missing; write them in parentheses, as in sqrt(2)",
		"sqrt()":   "sqrt does not take 0 arguments; write it as in sqrt(2)",
		"sin(1,2)": "sin does not take 2 arguments; write it as in sin(2)",
		"min()":    "min does not take 0 arguments; write it as in min(1, 2, 3)",
		"max(1,)":  `a number is missing before ")" at character 7`,
		// What has no value.
		"1/0":            "division by zero",
		"1%0":            "division by zero",
		"1/(2-2)":        "division by zero",
		"0^-1":           "division by zero: zero to a negative power",
		"0^-0.5":         "division by zero: zero to a negative power",
		"sqrt(-1)":       "the square root of a negative number is not a real number",
		"(-8)^(1/3)":     "a negative number to the power of a fraction is not a real number",
		"ln(0)":          "only numbers above zero have a logarithm",
		"log(-1)":        "only numbers above zero have a logarithm",
		"tan(pi/2)":      "tan is not defined at odd multiples of pi/2",
		"round(1, 0.5)":  "the second argument of round is a whole number of decimals, from -100 to 100",
		"round(1, 1000)": "the second argument of round is a whole number of decimals, from -100 to 100",
		"sin(10^51)":     "the angle is too large; up to 50 digits are possible",
		"cos(10^51)":     "the angle is too large; up to 50 digits are possible",
		"tan(10^51)":     "the angle is too large; up to 50 digits are possible",
		// What is too large.
		"9^9^9^9":               "the power is too large: it has about 369693100 digits; up to 6000 are possible",
		"9^-9^9":                "the power is too small: it has about 369693100 zeros behind the point; up to 6000 are possible",
		"10^1e300":              "the power is too large: it has about 1e+300 digits; up to 6000 are possible",
		"10^1e400":              "the power is too large: it has more than 1e308 digits; up to 6000 are possible",
		"2^20000":               "the power is too large: it has about 6021 digits; up to 6000 are possible",
		"exp(20000)":            "the power is too large: it has about 8686 digits; up to 6000 are possible",
		"exp(-20000)":           "the power is too small: it has about 8686 zeros behind the point; up to 6000 are possible",
		"(1+10^-30)^(10^40)":    "the power is too large: it has about 4342944819 digits; up to 6000 are possible",
		"1e4000*1e4000":         "an intermediate number is too large; up to 6000 digits are possible",
		"sqrt(2)*1e3500*1e3500": "an intermediate number is too large; up to 6000 digits are possible",
		"1e6001":                "an intermediate number is too large; up to 6000 digits are possible",
		"1e7001":                "the exponent of 1e7001 at character 1 is too large; up to 6000 digits are possible",
		"1e-7001":               "the exponent of 1e-7001 at character 1 is too large; up to 6000 digits are possible",
		"1e99999999999999999":   "the exponent of 1e99999999999999999 at character 1 is too large; up to 6000 digits are possible",
		"sqrt(1/0)":             "division by zero",
		"(1/0)":                 "division by zero",
		"2^(1/0)":               "division by zero",
		"1+(1/0)":               "division by zero",
		"-(1/0)":                "division by zero",
	}
	for expression, want := range tests {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			got, err := tools.EvaluateExpression(expression)
			if err == nil || err.Error() != want {
				t.Errorf("got %q, error %v, want error %s", got, err, want)
			}
		})
	}
}

func TestEvaluateBounds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		expression string
		wantErr    string // empty = it has a value
	}{
		{"longest", strings.Repeat("1+", 499) + "10", ""},
		{"too long", strings.Repeat("1+", 500) + "1", "the expression has 1001 characters; at most 1000 are possible"},
		{"characters, not bytes", strings.Repeat("1×", 499) + "10", ""},
		{"deepest", strings.Repeat("(", 100) + "1" + strings.Repeat(")", 100), ""},
		{"too deep", strings.Repeat("(", 101) + "1" + strings.Repeat(")", 101), "the expression is nested more than 100 deep"},
		{"too many powers", strings.Repeat("1^", 101) + "1", "the expression is nested more than 100 deep"},
		{"too deep in arguments", strings.Repeat("abs(", 101) + "1" + strings.Repeat(")", 101), "the expression is nested more than 100 deep"},
		{"many signs", strings.Repeat("-", 999) + "1", ""},
		{"many in a row", strings.Repeat("(1)*", 249) + "1", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := tools.EvaluateExpression(tt.expression)
			if got := errorText(err); got != tt.wantErr {
				t.Errorf("got error %q, want %q", got, tt.wantErr)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestEndsSoon evaluates the most work that fits into MaxExpressionLength. Each takes some
// ten milliseconds; without the bounds it would be hours, and the tests' time limit.
func TestEvaluateEndsSoon(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{
		"ln(1+1e-6000)+", "1/3^9000+", "1/3^9000*", "1/7^999+1/11^999+", "sin(1e99)+", "tan(pi)+", "pi+", "exp(13000)/", "(1+1e-6000)^.1+",
		"sqrt(1e5999)+", "1e6000%3+", "round(1e5990/7,9)+", "log(3e5999)+", "9^9^9+",
	} {
		t.Run(piece, func(t *testing.T) {
			t.Parallel()
			got, err := tools.EvaluateExpression(strings.Repeat(piece, (tools.MaxExpressionLength-1)/len(piece)) + "1")
			if (err == nil) == (got == "") {
				t.Errorf("got %q and error %v, want one of them", got, err)
			}
		})
	}
}
