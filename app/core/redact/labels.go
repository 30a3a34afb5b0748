package redact

import "strings"

// label is a name that says that what follows is secret.
type label struct {
	kind kind
	// chosen is a secret that a person chose: it may be a plain word. Others are
	// made by machines and look like that.
	chosen bool
	auth   bool // the value begins with a scheme, such as Bearer
	weak   bool // it says so only of what is assigned to it or stands in quotes
}

// longestLabel is more than any label has, in bytes.
const longestLabel = 24

// table is what to look for, by a byte that tells: the first of shapes and foreign
// labels, the last of labels.
type table struct {
	shapes  [256][]shape
	labels  [256][]suffix
	foreign [256][]string
}

// suffix is how a name ends that is a label.
type suffix struct {
	text  string // in lower case, without separators
	label label
	none  bool // names that end so are no labels, whatever stands below
	whole bool // without separators inside
	word  bool // it must be a word of the name
	upper bool // only as in APP_KEY
}

// newTable returns the table. Of the suffixes the first that fits holds.
func newTable() *table {
	t := &table{}
	for _, s := range shapes() {
		t.shapes[s.prefix[0]] = append(t.shapes[s.prefix[0]], s)
	}
	rows := func(names string, s suffix) {
		for name := range strings.FieldsSeq(names) {
			s.text = name
			last := name[len(name)-1]
			t.labels[last] = append(t.labels[last], s)
		}
	}
	rows("pagetoken nexttoken continuationtoken cancellationtoken cancelationtoken canceltoken synctoken stoptoken eostoken bostoken padtoken", suffix{none: true})
	rows("password passwd passphrase passwort kennwort contrasena senha", suffix{label: label{kind: password, chosen: true}})
	rows("pwd", suffix{label: label{kind: password, chosen: true}, whole: true})
	rows("pass", suffix{label: label{kind: password, weak: true}, word: true})
	rows("privatekey", suffix{label: label{kind: privateKey}})
	rows("secretaccesskey", suffix{label: label{kind: secret}})
	rows("apikey accesskey secretkey secretkeybase encryptionkey signingkey authkey licensekey masterkey accountkey sharedkey", suffix{label: label{kind: apiKey}})
	rows("key", suffix{label: label{kind: apiKey, weak: true}, upper: true})
	rows("secret", suffix{label: label{kind: secret, chosen: true}})
	rows("token credential credentials phpsessid jsessionid", suffix{label: label{kind: token}})
	rows("authorization", suffix{label: label{kind: token, auth: true}})
	rows("auth", suffix{label: label{kind: token, auth: true}, word: true})
	for name := range strings.FieldsSeq(foreign) {
		t.foreign[name[0]] = append(t.foreign[name[0]], name)
	}
	return t
}

// labelOf returns the label that a name ends with, such as that of DB_PASSWORD,
// dbPassword and db-password.
func (t *table) labelOf(name string) (label, bool) {
	if len(name) < 3 {
		return label{}, false
	}
	rows := t.labels[lower(name[len(name)-1])]
	if len(rows) == 0 {
		return label{}, false
	}
	var buf [longestLabel]byte
	n := len(buf)
	for i := len(name) - 1; i >= 0 && n > 0; i-- {
		if b := name[i]; b != '_' && b != '-' {
			n--
			buf[n] = lower(b)
		}
	}
	for _, s := range rows {
		if len(buf)-n < len(s.text) || string(buf[len(buf)-len(s.text):]) != s.text {
			continue
		}
		if s.whole && !strings.EqualFold(name[max(0, len(name)-len(s.text)):], s.text) {
			continue
		}
		if s.word && !endsInWord(name, len(s.text)) || s.upper && !strings.HasSuffix(name, "_KEY") {
			continue
		}
		l := s.label
		if s.text == "pass" && len(name) > len(s.text) { // DB_PASS
			l.chosen, l.weak = true, false
		}
		return l, !s.none
	}
	return label{}, false
}

func lower(b byte) byte {
	if isUpper(b) {
		return b + 'a' - 'A'
	}
	return b
}

// endsInWord reports whether the last n bytes of a name are a word of it: of db_pass
// and dbPass, not of compass.
func endsInWord(name string, n int) bool {
	before := name[:max(len(name)-n, 0)]
	return before == "" || !isAlpha(before[len(before)-1]) || isLower(before[len(before)-1]) && isUpper(name[len(name)-n])
}

// foreign are labels that are no words of ASCII letters.
const foreign = "пароль Пароль ПАРОЛЬ 密码 密碼 口令 パスワード 비밀번호 contraseña Contraseña CONTRASEÑA hasło Hasło lösenord Lösenord"

// foreignAt returns the length of such a label at i; 0 = none.
func (t *table) foreignAt(text string, i int) int {
	for _, l := range t.foreign[text[i]] {
		if strings.HasPrefix(text[i:], l) {
			return len(l)
		}
	}
	return 0
}
