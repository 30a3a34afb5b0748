package summarize

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// term is a word of a line, or two characters of a script without blanks.
type term struct {
	text   string
	weight float64 // how much information it carries; 0 = none
}

// termsOf returns the different words of a text. A number or a name weighs more than
// another word.
func termsOf(text string) []term {
	var out []term
	seen := map[string]bool{}
	add := func(text string, weight float64) {
		if !seen[text] {
			seen[text] = true
			out = append(out, term{text, weight})
		}
	}
	begins := true // the next word begins a sentence
	for part := range strings.FieldsSeq(text) {
		for _, w := range strings.FieldsFunc(part, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) }) {
			first, _ := utf8.DecodeRuneInString(w)
			switch {
			case unicode.In(first, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer):
				runes := []rune(w)
				for i := 0; i+1 < len(runes); i++ {
					add(string(runes[i:i+2]), 0.5)
				}
			case strings.ContainsFunc(w, unicode.IsDigit):
				add(w, 2)
			case isDate(strings.ToLower(w)):
				add(strings.ToLower(w), 2)
			case utf8.RuneCountInString(w) < 3:
			case unicode.IsUpper(first) && !begins:
				add(strings.ToLower(w), 1.5)
			default:
				add(strings.ToLower(w), 1)
			}
			begins = false
		}
		if last, _ := utf8.DecodeLastRuneInString(part); strings.ContainsRune(".!?:…", last) {
			begins = true
		}
	}
	return out
}

// frequencies counts how many lines contain a word.
type frequencies struct {
	lines  int
	counts map[string]int
}

func (f *frequencies) addTerms(terms []term) {
	if f.counts == nil {
		f.counts = map[string]int{}
	}
	f.lines++
	for _, w := range terms {
		f.counts[w.text]++
	}
}

// weighTerms reduces the weight of words that many lines contain.
func (f *frequencies) weighTerms(terms []term) {
	most := math.Log(float64(f.lines) + 1)
	for i, w := range terms {
		terms[i].weight *= max(0, 1-1.6*math.Log(float64(f.counts[w.text]))/most)
	}
}

// lineTokens is added to the tokens of each line, so that the shortest lines do not win
// for being short.
const lineTokens = 4

// newerBonus is the advantage of a section's newest line over its oldest.
const newerBonus = 0.25

// chooseMostTelling returns the lines that fit the room, first those with the most value
// per token, newer lines before equal older ones. Words in said, which chosen lines of all
// sections have, count less; lines without other words are skipped unless repeats is set.
func chooseMostTelling(lines []sectionLine, room int, said map[string]bool, repeats bool) []int {
	value := func(i int, said map[string]bool) float64 {
		return valueOf(lines[i].terms, said) / float64(lines[i].tokens+lineTokens) * (1 + newerBonus*float64(i)/float64(len(lines)))
	}
	var chosen []int
	take := func(waiting []candidate, least float64) (late []candidate) {
		for _, c := range waiting {
			v := value(c.at, said)
			switch {
			case lines[c.at].tokens > room || !repeats && v < c.first/2:
			case v < least*c.value:
				late = append(late, candidate{c.at, v, c.first})
			default:
				chosen, room = append(chosen, c.at), room-lines[c.at].tokens
				for _, t := range lines[c.at].terms {
					said[t.text] = true
				}
			}
		}
		return late
	}
	waiting := make([]candidate, len(lines))
	for i := range lines {
		waiting[i] = candidate{i, value(i, said), value(i, nil)}
	}
	take(sortByValue(take(sortByValue(waiting), 0.7)), 0)
	return chosen
}

// candidate is a line that may be chosen.
type candidate struct {
	at    int
	value float64 // when it was weighed last
	first float64 // when nothing was chosen
}

// sortByValue sorts the candidates by their value, newer ones first among equals.
func sortByValue(list []candidate) []candidate {
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.value, a.value), b.at-a.at)
	})
	return list
}

// valueOf sums up the weights of the terms; those in said count a quarter.
func valueOf(terms []term, said map[string]bool) float64 {
	sum := 0.0
	for _, t := range terms {
		if said[t.text] {
			sum += t.weight / 4
		} else {
			sum += t.weight
		}
	}
	return sum
}

// textValue returns the value of a text.
func (f *frequencies) textValue(text string) float64 {
	terms := termsOf(text)
	f.weighTerms(terms)
	return valueOf(terms, nil)
}

// isDate reports whether the word, in lower case, is part of a date. Scripts without blanks
// and other languages write most of a date in digits.
func isDate(w string) bool {
	const dates = " yesterday today tomorrow tonight monday tuesday wednesday thursday friday saturday sunday january february march april june july august september october november december" +
		" last next ago week weeks month months year years weekend birthday" +
		" gestern heute montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz juni juli oktober dezember woche wochen monat jahr jahre geburtstag" +
		" hier demain lundi mardi mercredi jeudi vendredi samedi dimanche janvier février mars avril juin juillet août septembre octobre novembre décembre semaine mois année" +
		" ayer mañana lunes martes miércoles jueves viernes sábado domingo enero febrero marzo abril junio julio agosto septiembre octubre noviembre diciembre semana mes año" +
		" вчера завтра понедельник вторник среда четверг пятница суббота воскресенье января февраля марта апреля июня июля августа сентября октября ноября декабря неделю неделе месяц год "
	return strings.Contains(dates, " "+w+" ")
}
