package standing

import (
	"slices"
	"strings"
)

// How alike the words of two instructions must be.
const (
	sameSubject = 0.75 // share of the words of both: the newer one replaces the older
	nearSubject = 0.5  // share of the words of one, if the newer one says that it changes or withdraws something
)

// Apply returns what the instruction does to those that stand before it, oldest first. It
// leaves those of other people as they are.
func Apply(standing []Instruction, found Found) Effect {
	isOthers := func(i Instruction) bool { return found.Speaker != "" && i.Speaker != "" && i.Speaker != found.Speaker }
	matches := findRelated(slices.DeleteFunc(slices.Clone(standing), isOthers), found)
	if len(matches) == 0 && (found.Withdraws || found.Amends) {
		return Effect{}
	}
	e := Effect{Stands: !found.Withdraws, Topic: found.Topic}
	for _, i := range matches {
		e.Ends = append(e.Ends, i.ID)
	}
	if found.Amends {
		e.Topic = matches[len(matches)-1].Topic
	}
	return e
}

// findRelated returns the instructions that are about the same as the one that was found.
func findRelated(standing []Instruction, found Found) []Instruction {
	if found.Topic == TopicAll && found.Withdraws {
		return standing
	}
	terms := termsOf(found.Text)
	if found.Topic != "" {
		if same := sameTopic(standing, found.Topic, subjectTerms(found.Topic, terms)); len(same) > 0 {
			return same
		}
	}
	return sameWords(standing, terms, found.Withdraws || found.Amends)
}

// sameTopic returns the instructions of the topic about the same thing: all that name a
// thing of the terms, else all that name none.
func sameTopic(standing []Instruction, topic string, terms []string) []Instruction {
	var named, general []Instruction
	for _, i := range standing {
		if i.Topic != topic {
			continue
		}
		own := subjectTerms(topic, termsOf(i.Text))
		switch {
		case common(terms, own) > 0:
			named = append(named, i)
		case len(own) == 0:
			general = append(general, i)
		}
	}
	if len(named) > 0 {
		return named
	}
	return general
}

// sameWords returns the instructions with the same words; the most alike one, if the newer one
// changes or withdraws something.
func sameWords(standing []Instruction, terms []string, near bool) []Instruction {
	var out []Instruction
	best := 0.0
	for _, i := range standing {
		own := termsOf(i.Text + " " + i.Topic)
		n := float64(common(terms, own))
		if n == 0 {
			continue
		}
		all := float64(len(terms)+len(own)) - n
		near := near && (n > 1 || len(own) == 1 || len(terms) == 1) // one word of several may mean something else
		switch share := n / float64(min(len(terms), len(own))); {
		case !near && n/all >= sameSubject:
			out = append(out, i)
		case near && share >= nearSubject && share > best:
			best, out = share, []Instruction{i}
		case near && share == best:
			out = nil // it is not certain which one is meant
		}
	}
	return out
}

// common returns how many of the terms are among the others.
func common(terms, others []string) int {
	n := 0
	for _, t := range terms {
		if slices.ContainsFunc(others, func(o string) bool { return sameWord(t, o) }) {
			n++
		}
	}
	return n
}

// subjectTerms returns the terms that name a thing within the topic. A name, a form of
// address and units have no things.
func subjectTerms(topic string, terms []string) []string {
	if topic == TopicName || topic == TopicAddress || topic == TopicUnits || topic == TopicLength || topic == TopicDiet {
		return nil
	}
	own := strings.Fields(map[string]string{
		TopicBudget:   "budget presupuesto spend ausgeben depenser gastar total limit maximum max euro euros eur dollar dollars pounds franken quiero changed mind raise increase lower set erhoehe senke most can veux sube baja passe pass say disons mach daraus liegt betraegt",
		TopicLanguage: "write speak talk schreib schreibe schreibst sprich rede ecris ecrivez parle parlez escribe habla hable contesta respondas prefiero switch back obliged", //nolint:misspell // other languages
	}[topic]) // they belong to the topic itself, and do not name a thing
	return slices.DeleteFunc(slices.Clone(terms), func(t string) bool { return slices.Contains(own, t) || isLanguage().MatchString(t) })
}
