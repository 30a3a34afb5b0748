package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"bobbin/app/core/llm"
)

// Bounds of an expression.
const (
	MaxExpressionLength = 1000 // characters
	MaxExpressionDepth  = 100  // parentheses and powers inside each other
)

type calcToken struct {
	text string // a number, a name or one symbol; "" = the end
	at   int    // position of the first character, from 1
}

func (t calcToken) describe() string {
	if t.text == "" {
		return "the end"
	}
	return fmt.Sprintf("%q at character %d", t.text, t.at)
}

// calculation evaluates tokens while it parses them, by recursive descent.
type calculation struct {
	tokens []calcToken
	depth  int
}

// calcPattern matches a token.
var calcPattern = regexp.MustCompile(`(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[a-z_]\w*|[^\s\pZ]`)

// EvaluateExpression returns the value of an arithmetic expression, such as 2*(3+4)^2, sqrt(2) or max(1, pi).
//
// ^ (or **) binds tightest and to the right (2^3^2 = 512, -2^2 = -4), then * / %, then + and -. a % b has the sign
// of b, round rounds halves away from zero, angles are in radians, log is the decimal logarithm, 0^0 is 1. Numbers
// are exact fractions of up to 1,000 digits, so that 0.1 + 0.2 is 0.3 and 1/3*3 is 1. Larger ones, irrational ones
// and what is computed from them are rounded to float64; results that are not exact begin with "≈ ".
//
// Errors say what is wrong and, if possible, at which character. The bounds hold before any work is done.
func EvaluateExpression(expression string) (string, error) {
	if n := utf8.RuneCountInString(expression); n > MaxExpressionLength {
		return "", fmt.Errorf("the expression has %d characters; at most %d are possible", n, MaxExpressionLength)
	}
	input := strings.ToLower(strings.NewReplacer("**", " ^", "×", "*", "·", "*", "÷", "/", "−", "-").Replace(expression))
	c := &calculation{}
	for _, place := range calcPattern.FindAllStringIndex(input, -1) {
		at := utf8.RuneCountInString(input[:place[0]]) + 1
		c.tokens = append(c.tokens, calcToken{text: input[place[0]:place[1]], at: at})
	}
	if len(c.tokens) == 0 {
		return "", errors.New("the expression is empty")
	}
	c.tokens = append(c.tokens, calcToken{})
	result, err := c.sum()
	if err != nil {
		return "", err
	}
	switch t := c.tokens[0]; t.text {
	case "":
		if decimals, ends := result.FloatPrec(); ends && decimals <= maxDecimals && !result.rounded {
			return result.FloatString(decimals), nil
		}
		if math.IsInf(result.float(), 0) {
			return "", errTooLarge
		}
		text := strconv.FormatFloat(result.float(), 'g', 15, 64)
		if shown, ok := new(big.Rat).SetString(text); ok && !result.rounded && shown.Cmp(result.Rat) == 0 {
			return text, nil // such as 1e-60
		}
		return "≈ " + text, nil
	case ")":
		return "", fmt.Errorf("%s has no opening parenthesis", t.describe())
	case ",":
		return "", fmt.Errorf("%s is outside of a function; write 1000 for 1,000 and 0.5 for 0,5", t.describe())
	default:
		return "", fmt.Errorf("there is no operator before %s", t.describe())
	}
}

// take consumes the next token if it is one of the symbols.
func (c *calculation) take(symbols ...string) (calcToken, bool) {
	t := c.tokens[0]
	if slices.Contains(symbols, t.text) {
		c.tokens = c.tokens[1:]
		return t, true
	}
	return t, false
}

func (c *calculation) sum() (number, error) {
	return c.chain(func() (number, error) { return c.chain(c.parseSigned, "*", "/", "%") }, "+", "-")
}

// chain evaluates operands joined by operators that bind to the left.
func (c *calculation) chain(operand func() (number, error), operators ...string) (number, error) {
	left, err := operand()
	for err == nil {
		operator, ok := c.take(operators...)
		if !ok {
			return left, nil
		}
		if next := c.tokens[0]; operator.text == "%" && (next.text == "" || strings.Contains("*/%^),", next.text)) {
			return number{}, fmt.Errorf("%% is the remainder of a division, and a number must follow it, not %s; write 15/100 for 15 percent", next.describe())
		}
		var right number
		if right, err = operand(); err == nil {
			left, err = left.apply(operator.text, right)
		}
	}
	return number{}, err
}

// parseSigned evaluates a power after any number of signs.
func (c *calculation) parseSigned() (number, error) {
	negative := false
	for sign, ok := c.take("+", "-"); ok; sign, ok = c.take("+", "-") {
		negative = negative != (sign.text == "-")
	}
	n, err := c.operand()
	if _, ok := c.take("^"); ok && err == nil {
		var exponent number
		if exponent, err = c.parseNested(c.parseSigned); err == nil {
			n, err = n.power(exponent)
		}
	}
	if err == nil && negative {
		n.Rat = new(big.Rat).Neg(n.Rat)
	}
	return n, err
}

// parseNested runs a rule that can contain its caller, and bounds the depth.
func (c *calculation) parseNested(rule func() (number, error)) (number, error) {
	if c.depth++; c.depth > MaxExpressionDepth {
		return number{}, fmt.Errorf("the expression is nested more than %d deep", MaxExpressionDepth)
	}
	defer func() { c.depth-- }()
	return rule()
}

// operand evaluates a number, a constant, a call, or an expression in parentheses.
func (c *calculation) operand() (number, error) {
	t := c.tokens[0]
	if t.text == "" || strings.Contains("*/%^),", t.text) || t.text == "." {
		return number{}, fmt.Errorf("a number is missing before %s", t.describe())
	}
	c.tokens = c.tokens[1:]
	switch first := t.text[0]; {
	case first == '(':
		args, err := c.arguments(t)
		if err == nil && len(args) != 1 {
			err = fmt.Errorf("the parenthesis at character %d must contain one number, not %d", t.at, len(args))
		}
		if err != nil {
			return number{}, err
		}
		return args[0], nil
	case first == '.' || first >= '0' && first <= '9':
		mantissa, exponent, _ := strings.Cut(t.text, "e")
		if len(strings.TrimLeft(exponent, "+-0")) > 4 { // more would exhaust the memory
			return number{}, errTooLarge
		}
		r, ok := new(big.Rat).SetString("0" + strings.TrimSuffix(mantissa, ".") + "e" + cmp.Or(exponent, "0"))
		if !ok {
			return number{}, fmt.Errorf("%s is not a number", t.describe())
		}
		return newNumber(r, false)
	case t.text == "pi":
		return roundedNumber(math.Pi)
	case t.text == "e":
		return roundedNumber(math.E)
	}
	functions := calcFunctions()
	f, ok := functions[t.text]
	if !ok {
		return number{}, fmt.Errorf("%s is unknown; the functions are %s; the constants are pi and e", t.describe(), strings.Join(slices.Sorted(maps.Keys(functions)), ", "))
	}
	open, ok := c.take("(")
	if !ok {
		return number{}, fmt.Errorf("the arguments of %s are missing; write them in parentheses, as in %s(2)", t.text, t.text)
	}
	args, err := c.arguments(open)
	if err == nil && (len(args) == 0 || len(args) > f.maxArgs) {
		err = fmt.Errorf("%s does not take %d arguments; write it as in %s(2)", t.text, len(args), t.text)
	}
	if err != nil {
		return number{}, err
	}
	return f.call(args)
}

// arguments evaluates expressions joined by commas, up to the parenthesis that closes open.
func (c *calculation) arguments(open calcToken) ([]number, error) {
	var args []number
	for more := c.tokens[0].text != ")"; more; _, more = c.take(",") {
		arg, err := c.parseNested(c.sum)
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	if t, ok := c.take(")"); !ok {
		return nil, fmt.Errorf("the parenthesis at character %d is not closed before %s", open.at, t.describe())
	}
	return args, nil
}

// NewCalculator returns the tool calculator; see EvaluateExpression for the syntax. Results are such as "80" or
// "≈ 0.333333333333333".
func NewCalculator() *Custom {
	type arguments struct {
		Expression string `json:"expression"`
	}
	return builtIn(llm.ToolSpec{
		Name: "calculator",
		Description: "Evaluates an arithmetic expression exactly. Supports + - * / ^ parentheses, % (the remainder of a division), " +
			"sqrt abs round(x, decimals) floor ceil min max sin cos tan (radians) ln log (decimal) exp, pi and e. " +
			"A result that begins with ≈ is rounded.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"expression":{"type":"string",` +
			`"description":"for example (2+3)*4^2 or round(199.99*0.19, 2); no thousands separators, no units"}},` +
			`"required":["expression"],"additionalProperties":false}`),
	}, `{"expression": "2+2"}`, func(_ context.Context, _ Call, args arguments) (string, error) {
		return EvaluateExpression(args.Expression)
	})
}
