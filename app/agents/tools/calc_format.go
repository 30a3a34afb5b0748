package tools

import (
	"math/big"
	"strconv"
	"strings"
)

const (
	shownDigits   = 15   // of a rounded result
	wholeBits     = 3322 // max bits of an exact integer part that is shown in full: 1,000 digits
	decimalDigits = 50   // max digits behind the point of an exact result
	plainExponent = 21   // rounded results from 10^21 on, and below 10^-7, have an exponent
)

// formatNumber returns the number in decimal notation.
func formatNumber(n number) string {
	if n.exact {
		if text, ok := formatExact(n.r); ok {
			return text
		}
	}
	text := "0"
	if !n.isZero() {
		text = formatRounded(n.toFloat(precision))
	}
	if shown, ok := new(big.Rat).SetString(text); n.exact && ok && shown.Cmp(n.r) == 0 {
		return text // such as 1e2000
	}
	return "≈ " + text
}

// formatExact returns all digits, and false if they do not end or are too many.
func formatExact(r *big.Rat) (string, bool) {
	decimals, ok := decimalsOf(r.Denom())
	if !ok || r.Num().BitLen()-r.Denom().BitLen() > wholeBits {
		return "", false
	}
	return r.FloatString(decimals), true
}

// decimalsOf returns how many digits a fraction with the denominator has behind
// the point, and false if they do not end within decimalDigits.
func decimalsOf(denom *big.Int) (int, bool) {
	scale := big.NewInt(1)
	for decimals := range decimalDigits + 1 {
		if new(big.Int).Rem(scale, denom).Sign() == 0 {
			return decimals, true
		}
		scale.Mul(scale, big.NewInt(10))
	}
	return 0, false
}

// formatRounded returns the first digits, without zeros at the end.
func formatRounded(f *big.Float) string {
	mantissa, tail, _ := strings.Cut(f.Text('e', shownDigits-1), "e")
	exponent, err := strconv.Atoi(tail)
	if err != nil {
		panic("calc: a number without an exponent: " + tail)
	}
	if exponent < -7 || exponent >= plainExponent {
		return withoutZeros(mantissa) + "e" + strconv.Itoa(exponent)
	}
	return withoutZeros(f.Text('f', max(0, shownDigits-1-exponent)))
}

// withoutZeros drops zeros at the end of decimals.
func withoutZeros(text string) string {
	if !strings.Contains(text, ".") {
		return text
	}
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}
