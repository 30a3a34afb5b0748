package redact

import "strings"

// The kinds of secret numbers: of payment cards, social security numbers of the United
// States, and PINs.
const (
	card   kind = "card number"
	social kind = "social security number"
	pin    kind = "PIN"
)

// Digits of a card number, without separators.
const (
	minCard = 13
	maxCard = 19
)

// numberEnd adds the secret number that begins at i and returns its end; i = none.
func (f *finder) numberEnd(i int) int {
	if !isDigit(f.text[i]) || i > 0 && (isWord(f.text[i-1]) || f.text[i-1] == '.') {
		return i
	}
	if to := socialEnd(f.text, i); to > i {
		f.add(i, to, social)
		return to
	}
	if to := cardEnd(f.text, i); to > i {
		f.add(i, to, card)
		return to
	}
	return i
}

// socialEnd returns the end of a number like 123-45-6789, or 123456789 behind a label, that
// begins at i; i = none.
func socialEnd(text string, i int) int {
	const size, bare = len("123-45-6789"), len("123456789")
	if classEnd(text, i, isDigit) == i+bare {
		if end := i + bare; end == len(text) || !isWord(text[end]) {
			if n := text[i:end]; isSocial(n[:3], n[3:5], n[5:]) && hasSocialLabel(text[:i]) {
				return end
			}
		}
		return i
	}
	if i+size > len(text) || i+size < len(text) && (isWord(text[i+size]) || text[i+size] == '-') {
		return i
	}
	n := text[i : i+size]
	if n[3] != n[6] || n[3] != '-' && n[3] != ' ' || !isSocial(n[:3], n[4:6], n[7:]) {
		return i
	}
	return i + size
}

// isSocial reports whether these may be the parts of a social security number: they are
// never zero, and the first is neither 666 nor over 899.
func isSocial(area, group, serial string) bool {
	return areAll(area+group+serial, isDigit) && area[0] != '9' && area != "000" && area != "666" && group != "00" && serial != "0000"
}

// hasSocialLabel reports whether the text ends with the label of a social security number,
// in the same sentence.
func hasSocialLabel(text string) bool {
	text = strings.ToLower(text[max(0, len(text)-labelDistance):])
	text = text[strings.LastIndexAny(text, "\n.;[")+1:]
	at := strings.LastIndex(text, "ssn")
	return at == 0 || at > 0 && !isWord(text[at-1]) || strings.Contains(text, "social security n")
}

// cardEnd returns the end of a card number that begins at i; i = none. It has an issuer's
// prefix and length, a valid check digit (ISO/IEC 7812), and at most one blank or hyphen
// between digits, always the same.
func cardEnd(text string, i int) int {
	var digits [maxCard]byte
	n, end, between := 0, i, byte(0)
	for at := i; at < len(text); at++ {
		b := text[at]
		switch {
		case isDigit(b) && n == maxCard:
			return i
		case isDigit(b):
			digits[n], n, end = b-'0', n+1, at+1
			continue
		case (b == ' ' || b == '-') && n > 3 && (between == 0 || between == b) && at+1 < len(text) && isDigit(text[at+1]):
			between = b
			continue
		}
		break
	}
	if end < len(text) && (isAlpha(text[end]) || text[end] == '_') || n < minCard || !hasIssuerPrefix(digits[:n]) || !hasCheckDigit(digits[:n]) {
		return i
	}
	return end
}

// hasIssuerPrefix reports whether the digits begin as those of a card of that length do.
func hasIssuerPrefix(d []byte) bool {
	two, four := int(d[0])*10+int(d[1]), int(d[0])*1000+int(d[1])*100+int(d[2])*10+int(d[3])
	switch n := len(d); {
	case d[0] == 4:
		return n == 13 || n == 16 || n == 19
	case two >= 51 && two <= 55 || four >= 2221 && four <= 2720:
		return n == 16
	case two == 34 || two == 37:
		return n == 15
	case two == 36 || two == 38 || two == 30:
		return n == 14
	default:
		return n >= 16 && (four == 6011 || two == 65 || four/10 >= 644 && four/10 <= 649 || two == 35 || two == 62)
	}
}

// hasCheckDigit reports whether the last digit is right (Luhn).
func hasCheckDigit(d []byte) bool {
	sum := 0
	for i := range d {
		n := int(d[len(d)-1-i])
		if i%2 == 1 {
			if n *= 2; n > 9 {
				n -= 9
			}
		}
		sum += n
	}
	return sum%10 == 0
}

// Digits of a PIN, and how far behind its label they may begin.
const (
	minPIN      = 4
	maxPIN      = 8
	pinDistance = 24
)

// labelDistance is the max length of the label of a social security number and the text
// between them.
const labelDistance = 40

// isPINLabel reports whether a word says that a PIN may follow.
func isPINLabel(word string) bool {
	switch strings.ToLower(word) {
	case "pin", "pin-code", "pincode", "pin-nummer", "geheimzahl", "passcode":
		return true
	default:
		return false
	}
}

// pinEnd adds the PIN that the label from i to end introduces: "PIN 1234", "my pin is
// 1234". It returns its end; end = there is none.
func (f *finder) pinEnd(i, end int) int {
	at := end
	for limit := min(len(f.text), end+pinDistance); at < limit && !isDigit(f.text[at]); at++ {
		if strings.IndexByte("\n.;[", f.text[at]) >= 0 {
			return end
		}
	}
	to := classEnd(f.text, at, isDigit)
	if to-at < minPIN || to-at > maxPIN || at == end || isWord(f.text[at-1]) || to < len(f.text) && isWord(f.text[to]) {
		return end
	}
	gap := f.text[end:at]
	if isLower(f.text[i+1]) && !strings.ContainsAny(gap, ":=") && !strings.HasSuffix(strings.TrimSpace(gap), "is") && !strings.HasSuffix(strings.TrimSpace(gap), "ist") {
		return end // "pin 4000 of the connector"
	}
	f.add(at, to, pin)
	return to
}
