package summarize

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
)

// The words that make a sentence a standing wish or an order, in the most common languages
// of conversations. The lists are short: a wish that they miss stays in the log. Entries
// are in lower case and separated by "|".
const (
	// standing are phrases that alone make a sentence a standing wish.
	standing = "from now on|going forward|in the future please|call me|i prefer|i'd prefer|i would prefer|i want you to|i'd like you to|i would like you to|i need you to" +
		"|you should always|you must always|you must never|you must not|every time you|whenever you|as a rule|at all times|my name is|remember that i|remember that my|answer in|reply in|respond in|answer me in" +
		"|i always want you|i never want you|i'd rather have|i would rather have|i'd rather you|i would rather you|keep your answers|keep your replies|keep your responses|keep every answer|keep all answers" +
		"|in all your answers|in all your replies|in all your responses|in all answers|in every answer|in every reply|in every response" +
		"|ab jetzt|von nun an|ab sofort|in zukunft|nenn mich|nenne mich|nennen sie mich|ich bevorzuge|ich möchte dass du|ich möchte dass sie|ist mir lieber|merk dir|merke dir|bitte immer|bitte nie|antworte auf|ich mag keine|ich mag keinen|ich mag kein|in allen antworten|in jeder antwort" +
		"|désormais|dorénavant|à partir de maintenant|appelle-moi|appelez-moi|je préfère|je préférerais|je veux que tu|je voudrais que|réponds en|répondez en" +
		"|a partir de ahora|de ahora en adelante|llámame|prefiero|quiero que|recuerda que|responde en" +
		"|d'ora in poi|da ora in poi|chiamami|preferisco|voglio che tu|rispondi in" +
		"|a partir de agora|de agora em diante|me chame|me chama|chame-me|prefiro|quero que você|responda em" +
		"|vanaf nu|voortaan|noem me|noem mij|ik heb liever|ik wil dat je" +
		"|od teraz|od tej pory|mów do mnie|nazywaj mnie|wolę" +
		"|отныне|с этого момента|впредь|называй меня|называйте меня|зови меня|я предпочитаю|предпочитаю|отвечай на|відтепер|називай мене" +
		"|bundan sonra|tercih ederim|tercih ediyorum|från och med nu|hädanefter|kalla mig|jag föredrar|fra nu af|kald mig|jeg foretrækker|fra nå av|kall meg|jeg foretrekker" +
		"|من الآن فصاعدا|نادني|अब से|हमेशा|मुझे बुलाओ|từ bây giờ|gọi tôi là|đừng bao giờ|mulai sekarang|panggil saya|jangan pernah"
	// joined are the same in scripts without blanks between words, or with endings.
	joined = "从现在开始|从现在起|從現在開始|從現在起|今后请|以后请|以後請|请叫我|請叫我|叫我|我更喜欢|我更喜歡|我希望你|请总是|請總是|请一直|請一直|始终|始終|务必|務必|永远不要|永遠不要|请不要|請不要|请勿|不要再|总是用|一律用" +
		"|今後は|これからは|必ず|常に|絶対に|決して|ないでください|と呼んで|にしてください|方が好き|ほうが好き|앞으로|항상|절대|라고 불러|선호합니다|선호해|지금부터|반드시|دائما|دائمًا|أبدا|أبدًا"
	// adverbs make a wish of a sentence without a person before them.
	adverbs = "always|never|don't|do not|avoid|no more|only use|use only|immer|nie|niemals|stets|keine|keinen|kein|toujours|jamais|siempre|nunca|evita|sempre|mai|evite|altijd|nooit|geen|zawsze|nigdy|unikaj" +
		"|всегда|никогда|избегай|завжди|ніколи|her zaman|daima|asla|alltid|aldrig|altid|aldri|luôn|selalu"
	// requests begin a question that asks for what the rest of it says.
	requests = "can you|could you|would you|will you|kannst du|könntest du|würdest du|können sie|könnten sie|würden sie|peux-tu|pourrais-tu|pouvez-vous|pourriez-vous|puedes|podrías|puoi|potresti|você pode|você poderia|kun je|kunt u|можешь|можете"
	// persons are the subjects of a story: "she always does it" is no wish.
	persons = "i|we|he|she|they|it|that|this|there|you|who|was|were|is|are|has|have|my|our|your|his|her|their" +
		"|ich|wir|er|es|du|ihr|man|das|ist|war|hat|habe|mein|meine|je|j|tu|il|elle|on|nous|vous|ils|elles|c|ça|yo|él|ella|nosotros|he|ha|hemos|había|es|está|io|lui|lei|noi|ho|è|era|eu|ele|ela|nós|é" +
		"|ik|wij|hij|zij|ze|het|ja|on|ona|my|oni|jest|я|мы|он|она|они|это|ты|вы|мой|jag|vi|han|hon|det|jeg|hun"
	// idioms begin like a wish, but are none.
	idioms = "for always|never give up|never gave|never saw|never thought|never knew|never had|never mind|don't worry|do not worry|don't give up|don't forget to|don't mention|don't know|don't think|don't be|don't you|don't get me wrong|don't hesitate|keine ahnung|keine sorge|kein problem|kein wunder|never say never|always a|always been|never been|no more than|geen idee|jamais vu|siempre es"
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

const (
	wishBytes = 200 // max size; a longer sentence is no rule
	wishTerms = 2   // a shorter sentence is no wish
)

// takeWishes records the user's standing wishes. It reads only a user's own prose: nothing
// pasted, quoted or in code.
func (s *scan) takeWishes(line string) {
	if s.role != core.RoleUser || s.inBlock || s.isFull(wishes) || strings.HasPrefix(line, "    ") || strings.HasPrefix(strings.TrimSpace(line), ">") {
		return
	}
	for _, sentence := range prompttext.Sentences(line) {
		sentence = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(sentence), "-*• "))
		if isWish(sentence) {
			s.takeEntry(wishes, sentence)
		}
	}
}

// isWish reports whether the sentence is a rule for all later answers.
func isWish(sentence string) bool {
	if len(sentence) > wishBytes || strings.Contains(sentence, "://") || strings.ContainsAny(sentence, "\"“„«「") || isProblem(sentence, false) {
		return false
	}
	bare := plainWords(sentence)
	if strings.Count(bare, " ") <= wishTerms && utf8.RuneCountInString(sentence) == len(sentence) {
		return false
	}
	request, isRequest := cutRequest(bare)
	return hasWord(bare, standing) || hasPart(sentence, joined) || (isRequest || !isQuestion(sentence)) && isDirected(request)
}

// cutRequest returns the plain sentence without the beginning of a request, and whether it
// has one: "can you always do it" asks to always do it.
func cutRequest(bare string) (rest string, isRequest bool) {
	for request := range strings.SplitSeq(requests, "|") {
		if rest, ok := strings.CutPrefix(bare, " "+request+" "); ok {
			return " " + rest, true
		}
	}
	return bare, false
}

// isDirected reports whether a part of the sentence has an adverb of a rule, and no person
// before it.
func isDirected(bare string) bool {
	if hasWord(bare, idioms) {
		return false
	}
	if strings.HasPrefix(bare, " use ") && strings.HasSuffix(bare, " only ") {
		return true
	}
	for part := range strings.SplitSeq(bare, ",") {
		part = " " + strings.TrimSpace(part) + " "
		for adverb := range strings.SplitSeq(adverbs, "|") {
			if i := strings.Index(part, " "+adverb+" "); i >= 0 && !hasWord(strings.ReplaceAll(part[:i+1], "'", " "), persons) {
				return true
			}
		}
	}
	return false
}

// isOrder reports whether the sentence tells its reader what to do.
func isOrder(sentence string) bool {
	bare := plainWords(sentence)
	if hasWord(bare, standing) || hasWord(bare, orders) || hasPart(sentence, joined) || hasPart(sentence, joinedOrders) {
		return true
	}
	for part := range strings.SplitSeq(strings.ReplaceAll(bare, ":", ","), ",") {
		words := append(strings.Fields(part), "", "")
		if hasWord(" "+words[0]+" ", polite) || hasWord(" "+words[0]+" ", imperatives) && hasWord(" "+words[1]+" ", objects) {
			return true
		}
	}
	return isDirected(bare)
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

func isQuestion(sentence string) bool {
	return strings.HasSuffix(sentence, "?") || strings.HasSuffix(sentence, "？") || strings.HasSuffix(sentence, "؟")
}
