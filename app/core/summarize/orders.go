package summarize

import (
	"strings"
	"unicode"

	"bobbin/app/core/prompttext"
	"bobbin/app/core/standing"
)

// The words that make a sentence an order to its reader, in lower case and separated by "|".
const (
	// orders are words of an instruction to a model.
	orders = "ignore|disregard|override|instruction|instructions|prompt|obey|pretend|jailbreak|exfiltrate|system notice|system message|you are now|act as|assistant must|ai must" +
		"|ignoriere|vergiss|anweisung|anweisungen|ignorez|oublie|oubliez|instrucciones|olvida|istruzioni|ignora|instruções|negeer|zignoruj|игнорируй|игнорируйте|забудь|инструкции|yoksay"
	// joinedOrders are orders in scripts without blanks between words.
	joinedOrders = "忽略|无视|無視|忘记之前|忘記之前|指示に従|指示を|指令|무시하|지시|تجاهل|تعليمات"
	// imperatives begin a sentence that tells the reader to do something, where an object
	// follows: "open the door", not "open x.txt: no such file".
	imperatives = "send|forget|reply|respond|answer|say|write|post|upload|email|mail|forward|call|visit|open|click|reveal|print|output|repeat|follow|remember|make|act|use|tell|give|show|delete|transfer|pay|buy|execute|run|do|start|stop|read|copy|include|add|append|insert|share|publish"
	objects     = "a|an|the|all|any|every|everything|each|your|my|his|her|its|our|their|this|these|that|me|it|us|them|sure|to|with|not|only|nothing|following|as"
	// polite words begin a sentence that tells the reader to do something.
	polite = "please|never|always|you|bitte|sende|schicke|antworte|schreibe|lösche|envoie|envoyez|réponds|répondez|supprime|envía|responde|escribe|borra|invia|rispondi|scrivi|envie|responda|отправь|отправьте|ответь|удали|напиши"
)

// takeWishes records what a user set for the whole conversation.
func (s *scan) takeWishes(text string) {
	for _, f := range standing.Find(text) {
		if len(f.Text) <= entryBytes && !f.Withdraws && !f.Amends {
			s.takeEntry(wishes, f.Text)
		}
	}
}

// isOrder reports whether the sentence tells its reader what to do.
func isOrder(sentence string) bool {
	bare := plainWords(sentence)
	if hasWord(bare, orders) || hasPart(sentence, joinedOrders) {
		return true
	}
	for part := range strings.SplitSeq(strings.ReplaceAll(bare, ":", ","), ",") {
		words := append(strings.Fields(part), "", "")
		if hasWord(" "+words[0]+" ", polite) || hasWord(" "+words[0]+" ", imperatives) && hasWord(" "+words[1]+" ", objects) {
			return true
		}
	}
	return len(standing.Find(sentence)) > 0
}

// withoutOrders returns the text of a tool or file without the sentences that tell the
// reader what to do.
func withoutOrders(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for _, sentence := range prompttext.Sentences(line) {
			if !isOrder(sentence) {
				b.WriteString(sentence)
			}
		}
	}
	return b.String()
}

// plainWords returns the sentence in lower case: words separated by one blank, commas
// between its parts, no other punctuation.
func plainWords(sentence string) string {
	var b strings.Builder
	b.WriteByte(' ')
	blank := true
	for _, r := range strings.ToLower(sentence) {
		switch {
		case r == '’' || r == '\'' || r == '-':
			r = map[rune]rune{'’': '\'', '\'': '\'', '-': '-'}[r]
		case unicode.IsLetter(r), unicode.IsMark(r), unicode.IsDigit(r):
		case strings.ContainsRune(",;:，；：(—–<>|｜[]", r):
			if !blank {
				b.WriteByte(' ')
			}
			b.WriteString(", ")
			blank = true
			continue
		default:
			r = ' '
		}
		if r == ' ' && blank {
			continue
		}
		blank = r == ' '
		b.WriteRune(r)
	}
	if !blank {
		b.WriteByte(' ')
	}
	return b.String()
}

// hasWord reports whether the plain text contains an entry of the list as whole words.
func hasWord(bare, list string) bool {
	for entry := range strings.SplitSeq(list, "|") {
		if i := strings.Index(bare, entry); i > 0 && strings.Contains(bare, " "+entry+" ") {
			return true
		}
	}
	return false
}

func hasPart(text, list string) bool {
	for entry := range strings.SplitSeq(list, "|") {
		if strings.Contains(text, entry) {
			return true
		}
	}
	return false
}
