package tools

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

type kind int

const (
	kindEnd    kind = iota
	kindNumber      // a literal; text is as big.Rat reads it
	kindName        // a function or a constant, in lower case
	kindSymbol      // an operator, a parenthesis or a comma
)

type token struct {
	kind kind
	text string
	at   int // position of the first character, from 1
}

// describe returns the name of the token in errors.
func (t token) describe() string {
	if t.kind == kindEnd {
		return "the end"
	}
	return fmt.Sprintf("%q at character %d", t.text, t.at)
}

// scanTokens splits an expression into tokens; the last one is kindEnd.
func scanTokens(expression string) ([]token, error) {
	var tokens []token
	input := []rune(expression)
	for i := 0; i < len(input); {
		at, c := i, input[i]
		t := token{at: at + 1}
		switch {
		case unicode.IsSpace(c):
			i++
			continue
		case isDigit(c) || c == '.':
			i = endOfNumber(input, i)
			t.kind, t.text = kindNumber, string(input[at:i])
			if err := checkNumber(t); err != nil {
				return nil, err
			}
		case isLetter(c):
			for i < len(input) && (isLetter(input[i]) || isDigit(input[i])) {
				i++
			}
			t.kind, t.text = kindName, strings.ToLower(string(input[at:i]))
		default:
			t.kind = kindSymbol
			t.text, i = symbolAt(input, i)
			if t.text == "" {
				return nil, fmt.Errorf("%q at character %d is not part of an expression", string(c), t.at)
			}
		}
		tokens = append(tokens, t)
	}
	return append(tokens, token{kind: kindEnd, at: len(input) + 1}), nil
}

func isDigit(c rune) bool  { return c >= '0' && c <= '9' }
func isLetter(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

// endOfNumber returns where the number ends that begins at i: digits, a point,
// digits, and an exponent if digits follow its "e".
func endOfNumber(input []rune, i int) int {
	digits := func(i int) int {
		for i < len(input) && isDigit(input[i]) {
			i++
		}
		return i
	}
	i = digits(i)
	if i < len(input) && input[i] == '.' {
		i = digits(i + 1)
	}
	if i < len(input) && (input[i] == 'e' || input[i] == 'E') {
		start := i + 1
		if start < len(input) && (input[start] == '+' || input[start] == '-') {
			start++
		}
		if end := digits(start); end > start {
			return end
		}
	}
	return i
}

// checkNumber refuses text that is no number, and exponents that would exhaust the memory;
// the zeros of an expression can balance MaxExpressionLength digits of an exponent.
func checkNumber(t token) error {
	mantissa, exponent, found := strings.Cut(strings.ToLower(t.text), "e")
	if strings.Trim(mantissa, ".") == "" {
		return fmt.Errorf("%q at character %d is not a number", t.text, t.at)
	}
	if !found {
		return nil
	}
	if n, err := strconv.Atoi(exponent); err != nil || n > MaxNumberDigits+MaxExpressionLength || n < -MaxNumberDigits-MaxExpressionLength {
		return fmt.Errorf("the exponent of %s at character %d is too large; up to %d digits are possible", t.text, t.at, MaxNumberDigits)
	}
	return nil
}

// parseLiteral returns the value of a number's text.
func parseLiteral(text string) (number, error) {
	// big.Rat does not accept a point without digits beside it.
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	mantissa = "0" + strings.TrimSuffix(mantissa, ".")
	if exponent != "" {
		mantissa += "e" + exponent
	}
	r, ok := new(big.Rat).SetString(mantissa)
	if !ok {
		panic("calc: scanned an invalid number: " + text)
	}
	return number{r: r, exact: true}.roundIfLarge()
}

// symbolAt returns the symbol that begins at i, in its ASCII spelling, and its end; "" =
// none.
func symbolAt(input []rune, i int) (string, int) {
	c := input[i]
	switch c {
	case '*':
		if i+1 < len(input) && input[i+1] == '*' {
			return "^", i + 2
		}
		return "*", i + 1
	case '+', '-', '/', '%', '^', '(', ')', ',':
		return string(c), i + 1
	case '×', '·':
		return "*", i + 1
	case '÷':
		return "/", i + 1
	case '−':
		return "-", i + 1
	default:
		return "", i
	}
}
