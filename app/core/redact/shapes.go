package redact

import "strings"

// shape is a key that is known by how it begins.
type shape struct {
	prefix string
	class  func(byte) bool // of the bytes that follow; nil = parts between dots
	least  int             // so many of them
	most   int             // and no more; 0 = any number
	kind   kind
	check  func(body string) bool // nil = nothing else is asked
}

// shapes is the table. Lengths are a little under those of real keys, as keys
// change, where nothing else is written that way.
func shapes() []shape {
	return []shape{
		{"sk-", isWord, 16, 0, apiKey, isModelKey}, // OpenAI, Anthropic, OpenRouter, DeepSeek …
		{"AKIA", isUpperOrDigit, 16, 16, apiKey, nil},
		{"ASIA", isUpperOrDigit, 16, 16, apiKey, nil},
		{"AIza", isWord, 30, 0, apiKey, nil}, // Google
		{"ya29.", isWord, 20, 0, token, nil},
		{"GOCSPX-", isWord, 20, 0, secret, nil},
		{"ghp_", isAlnum, 20, 0, token, nil}, // GitHub
		{"gho_", isAlnum, 20, 0, token, nil},
		{"ghu_", isAlnum, 20, 0, token, nil},
		{"ghs_", isAlnum, 20, 0, token, nil},
		{"ghr_", isAlnum, 20, 0, token, nil},
		{"github_pat_", isWord, 20, 0, token, hasDigit},
		{"glpat-", isWord, 16, 0, token, nil}, // GitLab
		{"glrt-", isWord, 16, 0, token, hasDigit},
		{"gldt-", isWord, 16, 0, token, hasDigit},
		{"glptt-", isWord, 16, 0, token, hasDigit},
		{"xoxb-", isWord, 10, 0, token, hasDigit}, // Slack
		{"xoxp-", isWord, 10, 0, token, hasDigit},
		{"xoxa-", isWord, 10, 0, token, hasDigit},
		{"xoxr-", isWord, 10, 0, token, hasDigit},
		{"xoxs-", isWord, 10, 0, token, hasDigit},
		{"xoxe-", isWord, 10, 0, token, hasDigit},
		{"xapp-", isWord, 10, 0, token, hasDigit},
		{"sk_live_", isAlnum, 10, 0, apiKey, nil}, // Stripe
		{"sk_test_", isAlnum, 10, 0, apiKey, nil},
		{"rk_live_", isAlnum, 10, 0, apiKey, nil},
		{"rk_test_", isAlnum, 10, 0, apiKey, nil},
		{"whsec_", isBase64, 16, 0, secret, hasDigit},
		{"npm_", isAlnum, 30, 0, token, nil},
		{"pypi-", isWord, 50, 0, token, nil},
		{"hf_", isAlnum, 30, 0, token, nil}, // Hugging Face
		{"gsk_", isAlnum, 40, 0, apiKey, nil},
		{"xai-", isAlnum, 40, 0, apiKey, nil},
		{"pplx-", isAlnum, 40, 0, apiKey, nil},
		{"r8_", isAlnum, 36, 0, apiKey, nil},
		{"nvapi-", isWord, 40, 0, apiKey, nil},
		{"tvly-", isWord, 20, 0, apiKey, hasDigit},
		{"SG.", nil, 50, 0, apiKey, nil},
		{"shpat_", isHex, 32, 0, token, nil}, // Shopify
		{"dop_v1_", isHex, 40, 0, token, nil},
		{"dckr_pat_", isWord, 20, 0, token, nil},
		{"hvs.", isWord, 24, 0, token, hasDigit}, // Vault
		{"glsa_", isWord, 32, 0, token, nil},     // Grafana
		{"lin_api_", isAlnum, 32, 0, apiKey, nil},
		{"ntn_", isAlnum, 40, 0, token, nil}, // Notion
		{"bob_", isWord, 40, 43, apiKey, hasDigit},
		{"eyJ", nil, 20, 0, token, isJWT},
		{"AGE-SECRET-KEY-1", isUpperOrDigit, 50, 0, privateKey, nil},
		{"$2a$", isBcrypt, 50, 56, secret, nil}, // hashes of passwords
		{"$2b$", isBcrypt, 50, 56, secret, nil},
		{"$2y$", isBcrypt, 50, 56, secret, nil},
		{"$argon2id$", isBcrypt, 40, 300, secret, nil},
	}
}

func isBcrypt(b byte) bool { return isBase64(b) || b == '$' || b == '.' || b == ',' }

// mostParts is how many parts a token has between dots: an encrypted one has five.
const mostParts = 5

// body returns where the body that begins at i ends. Every byte is looked at a
// bounded number of times, wherever bodies begin.
func (s shape) body(text string, i int) int {
	if s.class != nil && s.most > 0 {
		return while(text[:min(len(text), i+s.most+1)], i, s.class)
	}
	if s.class != nil {
		return while(text, i, s.class)
	}
	for part := 1; ; part++ {
		i = while(text, i, isWord)
		if part == mostParts || i+1 >= len(text) || text[i] != '.' || !isWord(text[i+1]) {
			return i
		}
		i++
	}
}

func hasDigit(body string) bool { return strings.ContainsAny(body, "0123456789") }

// isModelKey tells a key from a name such as a class of a style sheet.
func isModelKey(body string) bool {
	if strings.HasPrefix(body, "ant-") || strings.HasPrefix(body, "proj-") || strings.HasPrefix(body, "or-v1-") || strings.HasPrefix(body, "svcacct-") {
		return true
	}
	t := traitsOf(body)
	return t.run >= 20 || t.run >= 10 && t.digits > 0
}

// isJWT reports whether the body has the parts of a signed token, or the five of an
// encrypted one.
func isJWT(body string) bool {
	parts := strings.Split(body, ".")
	n := len(parts)
	return n >= 3 && len(parts[0]) >= 8 && len(parts[2]) >= 8 && (n == mostParts || strings.HasPrefix(parts[1], "eyJ"))
}

// shapeAt adds the key that begins at i and returns its end; i = none does.
func (f *finder) shapeAt(i int) int {
	for _, s := range f.shapes[f.text[i]] {
		if !strings.HasPrefix(f.text[i:], s.prefix) {
			continue
		}
		body := i + len(s.prefix)
		end := s.body(f.text, body)
		for end > body && strings.IndexByte(".,-", f.text[end-1]) >= 0 { // of the sentence
			end--
		}
		n := end - body
		if n < s.least || s.most > 0 && (n > s.most || end < len(f.text) && isAlnum(f.text[end])) || s.check != nil && !s.check(f.text[body:end]) {
			continue
		}
		f.add(i, end, s.kind)
		if s.prefix == "AKIA" || s.prefix == "ASIA" {
			f.secretOfKey(end)
		}
		return end
	}
	return i
}

// keyDistance is how far behind an AWS key its secret is looked for, in bytes.
const keyDistance = 200

// secretOfKey adds the secret of an AWS key that ended at i: forty base64 characters
// in upper and lower case.
func (f *finder) secretOfKey(i int) {
	end := min(len(f.text), i+keyDistance)
	for i < end {
		from := i
		i = while(f.text, i, isKeyByte)
		if n := strings.LastIndexByte(strings.TrimRight(f.text[from:i], "="), '='); n >= 0 { // of an assignment
			from += n + 1
		}
		if v := f.text[from:i]; len(v) == 40 && all(v, isBase64) && strings.IndexFunc(v, isUpperRune) >= 0 && strings.IndexFunc(v, isLowerRune) >= 0 && hasDigit(v) {
			f.add(from, i, secret)
			return
		}
		i++
	}
}

func isKeyByte(b byte) bool { return isBase64(b) || isWord(b) }

func isUpperRune(r rune) bool { return r >= 'A' && r <= 'Z' }
func isLowerRune(r rune) bool { return r >= 'a' && r <= 'z' }
