package standing

import (
	"strings"
	"sync"
)

// valueWords are words that name a value, by the kind of value, folded and in all languages.
// An instruction about the same thing with another value of the same kind is a change of the
// older one: "prices in dollars", "prices in euros".
//
//nolint:misspell // other languages
func valueWords() map[string]string {
	return map[string]string{
		"currency": "dollar dollars euro euros pound pounds franc francs franken chf usd eur gbp pfund yen pesos dolares libras francos $ € £",
		"measure": "celsius fahrenheit kelvin kilometer kilometers kilometre kilometres kilometern km mile miles meilen millas kilometros meter meters metres metern metros feet fuss pieds pies inches zoll pouces pulgadas" +
			" kilo kilos kilogram kilograms kilogramm kg pound pounds pfund livres litres liters liter litros gallons metric imperial 12-hour 24-hour",
		"nation": "american british canadian australian european european-style us uk amerikanisch amerikanische amerikanischen amerikanisches britisch britische britischen britisches europaeisch europaeische europaeischen europaeisches" +
			" americain americaine americains americaines britannique britanniques europeen europeenne europeens europeennes americano americana americanos americanas britanico britanica britanicos britanicas europeo europea europeos europeas",
		"tone": "formal informal casual relaxed friendly professional serious humorous playful neutral warm polite foermlich foermlicher formell formeller informell locker lockerer lockeren sachlich sachlicher freundlich freundlicher humorvoll ernst" +
			" formel formelle informel informelle detendu detendue decontracte decontractee amical amicale serieux serieuse soutenu familier familiere neutre cercano cercana relajado relajada amistoso amistosa serio seria desenfadado",
		"day": "monday mondays tuesday tuesdays wednesday wednesdays thursday thursdays friday fridays saturday saturdays sunday sundays montag montags dienstag dienstags mittwoch mittwochs donnerstag donnerstags freitag freitags samstag samstags sonntag sonntags" +
			" lundi lundis mardi mardis mercredi mercredis jeudi jeudis vendredi vendredis samedi samedis dimanche dimanches lunes martes miercoles jueves viernes sabado sabados domingo domingos",
		"software": "python go golang java kotlin javascript typescript rust ruby php swift scala haskell perl bash sql postgres postgresql mysql sqlite mongodb react vue angular svelte npm yarn pnpm markdown html json yaml csv xml latex",
	}
}

//nolint:gochecknoglobals // immutable
var valueKinds = sync.OnceValue(func() map[string]string {
	kinds := map[string]string{}
	for kind, words := range valueWords() {
		for w := range strings.FieldsSeq(words) {
			kinds[w] = kind
		}
	}
	return kinds
})

// changeWords signal that an instruction takes the place of an older one.
const changeWords = `now instead actually rather switch forward henceforth today jetzt sofort kuenftig zukuenftig lieber doch stattdessen statt fortan zukunft
	desormais dorenavant maintenant plutot finalement avenir ahora mejor adelante hoy cambia cambio`

// prohibitions are words of an instruction that forbids something. Values that are forbidden
// one after the other are all forbidden.
const prohibitions = `no not never don't dont without avoid stop nie niemals nicht kein keine keinen keiner ohne vermeide jamais pas aucun aucune sans evite evitez nunca jamas sin ningun ninguna`

//nolint:gochecknoglobals // immutable
var (
	changeSet      = sync.OnceValue(func() map[string]bool { return wordSet(changeWords) })
	prohibitionSet = sync.OnceValue(func() map[string]bool { return wordSet(prohibitions) })
)

// statement is what an instruction sets, apart from its words of time and grammar.
type statement struct {
	terms     []string        // what it is about, without values
	kinds     map[string]bool // of its values
	forbids   bool
	isChanged bool // it signals that it takes the place of another one
}

func statementOf(text string) statement {
	s := statement{kinds: map[string]bool{}}
	for w := range strings.FieldsSeq(fold(text)) {
		if kind := valueKinds()[w]; kind != "" {
			s.kinds[kind] = true
		}
		s.forbids = s.forbids || prohibitionSet()[w]
		s.isChanged = s.isChanged || changeSet()[w]
	}
	for _, t := range termsOf(text) {
		if valueKinds()[t] == "" && !changeSet()[t] {
			s.terms = append(s.terms, t)
		}
	}
	return s
}

// replaces reports whether the statement has another value for what the older one is about:
// the rest of both is the same, or nearly so if the newer one signals a change.
func (s statement) replaces(older statement) bool {
	if s.forbids || older.forbids || !s.sharesKind(older) {
		return false
	}
	n := common(s.terms, older.terms)
	fewer := min(len(s.terms), len(older.terms))
	if s.isChanged {
		return fewer == 0 || float64(n) >= nearSubject*float64(fewer)
	}
	return float64(n) >= sameSubject*float64(len(s.terms)+len(older.terms)-n)
}

func (s statement) sharesKind(other statement) bool {
	for kind := range s.kinds {
		if other.kinds[kind] {
			return true
		}
	}
	return false
}

// sameValue returns the instruction that has another value for what the text is about, if it is the
// only one.
func sameValue(standing []Instruction, text string, amends bool) []Instruction {
	newer := statementOf(text)
	newer.isChanged = newer.isChanged || amends
	if len(newer.kinds) == 0 {
		return nil
	}
	var out []Instruction
	for _, i := range standing {
		if newer.replaces(statementOf(i.Text)) {
			out = append(out, i)
		}
	}
	if len(out) > 1 {
		return nil
	}
	return out
}
