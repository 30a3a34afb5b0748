package redact

import (
	"regexp"
	"strings"
)

// The kinds of secret numbers: of payment cards, social security numbers of the United
// States, and PINs.
const (
	card   kind = "card number"
	social kind = "social security number"
	pin    kind = "PIN"
)

const (
	maxNumber     = 64 // bytes that are read of a number with its surroundings
	labelDistance = 40 // most bytes of the label of a social security number and the text between them
)

var (
	socialNumber = regexp.MustCompile(`^(\d{3}-\d\d-\d{4}|\d{3} \d\d \d{4}|\d{9})(?:[^\w-]|$)`)
	socialNever  = regexp.MustCompile(`^(?:000|666|9)|^...00|0000$`) // parts that no number has
	socialLabel  = regexp.MustCompile(`(?i)(?:(?:^|[^\w-])ssn|social security n)[^\n.;\[]*$`)

	cardNumber = regexp.MustCompile(`^(\d{4,}(?: \d+)+|\d{4,}(?:-\d+)+|\d+)(?:[^\d\pL_]|$)`)
	cardIssuer = regexp.MustCompile(`^(?:4\d{12}(?:\d{3}){0,2}|(?:5[1-5]|2[3-6])\d{14}|(?:22[3-9]|27[01])\d{13}|(?:222[1-9]|2720)\d{12}|3[47]\d{13}|3[068]\d{12}|(?:6011|65\d\d|64[4-9]\d|35\d\d|62\d\d)\d{12,15})$`)

	pinLabel = regexp.MustCompile(`^(?i:pin|pin-?code|pin-nummer|geheimzahl|passcode)$`)
	pinAfter = regexp.MustCompile(`^([^\d\n.;\[]{0,22}[^\d\n.;\[\w-])(\d{4,8})(?:[^\w-]|$)`)
	pinVerb  = regexp.MustCompile(`[:=]|ist?\s*$`)
)

// numberEnd adds the secret number that begins at i and returns its end; i = none.
func (f *finder) numberEnd(i int) int {
	if !isDigit(f.text[i]) || i > 0 && (isWord(f.text[i-1]) || f.text[i-1] == '.') {
		return i
	}
	if classEnd(f.text, i, isDigit)-i < 3 { // most numbers
		return i
	}
	rest := f.textFrom(i, maxNumber)
	if m := socialNumber.FindStringSubmatch(rest); m != nil {
		digits := strings.NewReplacer(" ", "", "-", "").Replace(m[1])
		if !socialNever.MatchString(digits) && (len(m[1]) > len(digits) || socialLabel.MatchString(f.text[max(0, i-labelDistance):i])) {
			f.add(i, i+len(m[1]), social)
			return i + len(m[1])
		}
	}
	if m := cardNumber.FindStringSubmatch(rest); m != nil {
		if digits := strings.NewReplacer(" ", "", "-", "").Replace(m[1]); cardIssuer.MatchString(digits) && hasCheckDigit(digits) {
			f.add(i, i+len(m[1]), card)
			return i + len(m[1])
		}
	}
	return i
}

// hasCheckDigit reports whether the last digit is right (Luhn, ISO/IEC 7812).
func hasCheckDigit(digits string) bool {
	sum := 0
	for i := range digits {
		n := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			n = n*2/10 + n*2%10
		}
		sum += n
	}
	return sum%10 == 0
}
