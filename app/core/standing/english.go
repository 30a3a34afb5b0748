package standing

// english returns the rules of English.
//
//nolint:funlen // a table of words
func english() definition {
	return definition{
		name: "en",
		triggers: `always never ever from going moving henceforth future until unless rest remainder throughout whole entire all every each whenever times default rule
			circumstances account exception don dont not stop avoid refrain answer reply respond speak talk write keep answers replies responses brief concise use using only call address refer name
			pronouns budget spend allergic allergy intolerant intolerance vegan vegetarian celiac coeliac diabetic eat drink remember mind note forget prefer want like need expect must no
			longer again anymore drop scratch ignore actually instead make change switch raise increase lower rather fine may stick limit further go timezone have live ask before all every limit treat address you me
			budget without appreciate prefer glad grateful cap ceiling allowed permitted supposed forbidden limits available disposal afford stretch diet keto kosher halal pescatarian period`,
		names: map[string]string{
			"lead": `(?:^|, )(?:(?:ok|okay|so|and|but|also|then|well|oh|now|btw|by the way|one more thing|hey|actually|first|no|yes|thanks|thank you|great|alright|just|simply|pls|please|kindly|in general|generally) )*`,
			"mark": `from (?:now|here|today|this point|this moment|then) on(?:wards?| out)?|as of (?:now|today)|(?:going|moving) forward|henceforth|(?:^|, |please )in (?:the )?future|until (?:further notice|(?:i|we) (?:say|tell you) otherwise)|unless i (?:say|tell you|ask) otherwise` +
				`|(?:for|during|throughout) (?:the )?(?:rest|remainder|whole|entirety|duration) of (?:this|the|our) {talk}|(?:for|during|throughout|in) (?:this|our) (?:(?:whole|entire) )?{talk}|for the (?:whole|entire) {talk}` +
				`|(?:in|for|of|to|at) (?:all|every|each)(?: one)?(?: of)?(?: your| future| my| the)* {answers}|at all times|by default|as a (?:general )?rule|every time|each time|whenever|under (?:no|any) circumstances|on no account|without exception|throughout$|(?:all|the whole) the way through|the (?:whole|entire) time`,
			"talk":     `conversation|chat|session|discussion|thread|dialog(?:ue)?`,
			"answers":  `answers?|repl(?:y|ies)|responses?|messages?|outputs?|explanations?`,
			"tell":     `answer|reply|respond|speak|talk|write|communicate|converse|continue`,
			"adverb":   `always|never(?: ever)?|(?:don't|dont|do not) ever`,
			"prohibit": `mention|use|include|add|write|suggest|recommend|ask me|apologi[sz]e|repeat|propose|bring up|talk|speak|discuss|share|send|book|buy|order|schedule|delete|touch|change|modify|edit|translate|summari[sz]e|reveal|call|contact|address|refer|answer|reply|respond|offer|explain|spend|exceed|start|end|format|store|log|publish|post|commit|push|deploy|run|execute|install|assume|guess|invent|make up|quote|cite|disclose|overwrite|remove`,
			"style":    `short|brief|concise|long|detailed|formal|informal|casual|polite|simple|terse|succinct|crisp|direct|friendly|professional|plain`,
			"budget":   `budget|to spend|available|at my disposal`,
			"have":     `(?:i|we)(?:'ve| have)(?: got)?`,
			"diet":     `(?:\w+ )?(?:allergic to|vegan|(?:a |an )?vegetarian|(?:lactose|gluten|fructose)[ -]intolerant|(?:a )?c(?:o)?eliac|(?:a )?diabetic|colou?r[ -]?blind|intolerant to)`,
		},
		sets: []string{
			`{lead}(?:i'd|i would|we'd|it would be|it'd be) (?:\w+ )?(?:appreciate|love|like|prefer|glad|happy|grateful|great|nice|good|better|best) (?:it )?(?:if|when) you (?:\w+ )?(?:always|never|only|did ?n[o']t|do ?n[o']t|would ?n[o']t|stopped|avoided|kept|stuck)`,
			`{lead}(?:you're|you are|your|you) (?:only|not) (?:allowed|permitted|supposed) to|{lead}you may only |{lead}it(?:'s| is) (?:strictly )?forbidden to |(?:are|is) (?:strictly |completely )?off[ -]limits(?: for you| to you|$)`,
			`(?:^|, )(?:and |also |but |so |because |since |as )*(?:i'm|i am|we're|we are) on an? (?:\S+ ){1,3}diet|(?:^|, )(?:i|we) (?:eat|keep|follow|stick to)(?: only| strictly| an?)* (?:keto|kosher|halal|vegan|vegetarian|low-\w+|gluten-free|\w+ diet)`,
			`^(?:please , |please )?no \S+(?: \S+){0,6} , (?:ever|please|period|thank you|thanks)$|^no \S+(?: \S+)? (?:before|after|without) \S+(?: \S+){0,2}$`,
			`^(?:every|each|all) \w+(?: \w+)? (?:that )?you (?:\w+ )?(?:needs?|has|have|must|should|ought)(?: to)? `,
			`{lead}stick (?:with|to) .*{mark}`,
			`{lead}{adverb} (?:again )?(?P<verb>\S+)`,
			`{mark} ?,?(?: (?:please|just|also|only|then))* (?P<verb2>\S+)`,
			`^(?:, |please |also |just |so |and )*(?P<verb3>\S+) .*{mark}$`,
			`{lead}(?:you|we) (?:must|are to|shall|should|have to|need to|will|can)(?: please)? (?:always|never|not ever|only)`,
			`{lead}you (?:must|shall|may|should) not|{lead}you are not (?:allowed|permitted|to) `,
			`(?:make|be) sure (?:that )?(?:you|to) (?:always|never)|(?:remember|take care|try|be careful) to (?:always|never)|please (?:always|never)|(?:want|'d like|would like|need|expect|ask) you to (?:always|never|only|not|{tell})|want you (?:always|never) to|(?:always|never) want you to`,
			`{lead}(?:cite|use|include|add|answer|reply|respond|write|ask|give|show|check|tell|format|put|start|begin|end|keep|say|quote|name|state|mention|explain|convert|sign|treat|round|list|provide) .*(?:always|every time|at all times)$`,
			`{lead}(?:don't|dont|do not|stop|avoid|refrain from|no longer) (?:please )?{prohibit}`,
			`{lead}(?:stop|avoid|refrain from) (?:using|mentioning|adding|including|writing|suggesting|recommending|asking|apologi[sz]ing|repeating|talking|speaking|sending|calling|answering|offering)`,
			`{lead}(?:don't|dont|do not) .*without (?:my|asking|telling|checking)|{lead}(?:always )?(?:ask|check with|tell) me (?:first )?before (?:you|\w+ing)|{lead}before you .* , (?:always )?(?:ask|check|tell)`,
			`(?:^|, )(?:all|every|each)(?: of)?(?: the| your| my)? \w+(?: \w+){0,2} (?:must|should|has to|have to|needs to|need to) (?:be|have|include|use|contain|end|start|stay)`,
			`{lead}(?:use|write|give|show|add) .*(?:in|for|with|to) (?:all|every|each|any) (?:of )?(?:the |your |my )?(?:\w+ )?(?:code|examples?|answers?|replies|responses?|calculations?|prices?|dates?|times?|emails?|messages?|samples?|files?|functions?|recipes?|units)`,
			`{lead}(?:limit|restrict|cap) (?:all |each of )?(?:your |the )?{answers}|{lead}(?:answer|reply|respond) (?:with|in) .* only$|{lead}write code only in|{lead}treat (?:everything|all|anything)`,
			`{mark} ,? ?you (?:are|will|only|should|must|always|never|don't|can only)\b|{lead}under (?:no|any) circumstances should you`,
			`{lead}address me \w+ly|{lead}i go by (?P<notCall2>\S+)|(?:^|, )my (?:time ?zone|preferred language|dietary \w+) (?:is|are)`,
			`{lead}keep (?:it|this|that|everything|the total|costs?|the price) (?:all )?(?:under|below|within) [€$£]?\d.*(?:total|€|\$|£|euros?|dollars?|pounds?|overall)|^(?:my |our |the |total )?budget , (?:max |about )?[€$£]?\d`,
			`(?:^|, )(?:i|we) have (?:celiac|coeliac|diabetes)|(?:^|, )(?:i|we) only (?:eat|drink) |{lead}(?:remember|keep in mind|bear in mind|note) i(?:'m|'ve| am| have| can't| don't| only) `,
			`{lead}(?:can |could |shall )?we (?:switch|speak|talk|write|continue) .*{lang}`,
			`{lead}avoid (?P<verb4>\S+)(?: \S+){0,6} (?:in|with|for) (?:your|all|every)`,
			`{lead}no (?:more )?(?:emojis?|emoticons|jargon|abbreviations|acronyms|markdown|tables|bullet points|lists|slang|small ?talk|preamble|disclaimers|exclamation marks|swear words)`,
			`{lead}(?:always )?{tell}(?: to| with)?(?: me| back| only| everything| strictly)* (?:only |exclusively )?in (?:\w+ )?(?:{lang}|{style} \w+|bullet points|full sentences|complete sentences|plain text|markdown)(?: (?:only|please|from|at|when|and|until|unless|no|i|because|since)|,|$)`,
			`{lead}(?:write|put|give|show|format|make|state|express|quote|round|sign|end|start|begin|finish|prefix|convert|check|cite|name|treat|add|include) (?:me |with )?(?:all|every|each|any) `,
			`{lead}keep (?:all |every |each of )?(?:your |the |of |my |each )*{answers}`,
			`(?:^|, )(?:and |please |i want |i would like |i'd like )*(?:all|every|each|any)?(?: of)? ?(?:your |the )?{answers} (?:should|must|have to|need to|are to|shall|no longer than|may|can|be)`,
			`{lead}be (?:more |very |always )?{style}(?: in| with| please|$)`,
			`{lead}(?:use|switch to|stick to|work in) (?:the )?(?:metric|imperial|us|american|british|si|celsius|fahrenheit|kilomet(?:er|re)s|miles|24-hour|12-hour|iso)\b`,
			`{lead}(?:only|exclusively) (?:use|recommend|suggest|answer|reply|respond|write|show|give|cite|book|buy|send|call|propose|speak|offer|mention|include)|{lead}(?:use|recommend|suggest|show|cite) only|{lead}use .* only$`,
			`{lead}(?:you can |you may )?call me (?P<notCall>\S+)`, `{lead}(?:address me|refer to me) (?:as|by|with)`, `^(?:hi |hello |hey |, |oh |btw )*my (?:first |full )?name is`, `^my (?:preferred )?pronouns are`,
			`(?:^|, )(?:(?:and|so|but|i've changed my mind|ok|remember|note|keep in mind|that|also) )*(?:my|our|the)(?: \w+){0,2} (?:budget|spending limit|price limit|limit|maximum|cap|ceiling|upper limit)(?: for .{1,40}| of)?(?: is| stays| remains| was set)?(?: now| only| still| at)?(?: at most| a maximum of| about| around| max| up to| limited to| capped at| set to)? [€$£]?\d`,
			`(?:i|we)(?: only|'ve| have|'ve got)? (?:have|got|a)?(?: got)?(?: only)? ?(?:a|the|my|our) (?:total |maximum |strict )?budget of`,
			`(?:i|we) (?:can|can't|cannot|could|want to|don't want to|do not want to|won't|will not|will|must not|may)(?: only| not)? (?:spend|pay|afford) (?:at most|no more|not more|more|up to|only|a maximum|max)`,
			`(?:^|, )(?:and |also |but |so |because |since |as |note that |keep in mind that |remember that |that )*(?:i'm|i am|im|we're|we are) {diet}`,
			`(?:^|, )(?:and |also |but |so |because |since |as )*(?:i|we) (?:don't|do not|can't|cannot|mustn't|never) (?:eat|drink|tolerate) `,
			`(?:i|we) have (?:a |an )?(?:\w+ ){0,3}(?:allerg(?:y|ies)|intolerance)`,
			`{lead}(?:always )?(?:remember|keep in mind|bear in mind|take into account|note|don't forget|do not forget|never forget)(?: that| , that| ,) (?:i|i'm|i've|i'll|my|we|we're|our|all|every|each|never|always|no|the|only|dates|prices)\b`,
			`{lead}(?:remember|keep in mind|bear in mind) (?:this|the following) `,
			`(?:keep (?:that|this|it) in mind|bear (?:that|this|it) in mind|remember (?:that|this|it)) (?:for|in|from|when|always|at|throughout)`,
			`{lead}(?:i'd|i would|i)(?: always| generally| really| much)? (?:prefer|rather have) (?:you|it if you|it when you|to be called|to be addressed|{style}|answers|replies|responses|metric|imperial|{lang}|window|aisle)`,
			`{lead}i (?:don't|do not|never) want (?:you to|any more|to spend|to pay)`,
		},
		notVerbs: `a an the been had has was were is are am in on at for of with from to up down out off i we he she it they there this that these those my our his her their its your some people everyone everybody
			nobody everything nothing things something life what how who when where why so if because and but or great good nice happy fun glad proud here love loves knew thought saw gave got did made felt heard forgot
			mind again too once better really quite worth wonderful grateful thankful amazing awesome seen ready able one more less enough dream dreams expected looks feels seems makes keeps gets comes goes says works feeling
			not as than just like very both only will would can could should did does do you you're you've you'll i'm i'll i've we're we'll it's he's she's they're that's there's always never ever even knew sure easy hard
			back when whenever later tomorrow tonight today asap maybe crazy old soon before after anytime any if by around first`,
		notVerb: `\w+[^eaio]ed|\w{3,}(?:lov|lik|us|hop|wish|car|smil)ed|\w{3,}ing|\w+ful|\w+ly`,
		withdraws: []string{
			`{lead}(?:forget|drop|scratch|cancel|remove|lift|discard|never mind|nevermind|ignore|disregard|abandon)(?: about)? (?:(?:what|everything|all) i (?:said|told you|wrote|asked)(?: before| earlier)?(?: about| on| regarding)?|(?:the|my|our|that|this)(?: \w+){0,3}? ?(?:budget|rule|instruction|limit|limitation|restriction|requirement|request|wish|preference|ban|thing|diet|allergy)s?)`,
			`{lead}forget (?:about )?(?:the|my|our) \w+(?: \w+)?$`,
			`{lead}(?:forget|drop|ignore|disregard|discard) (?:all|everything)(?: of)? (?:my|i)`,
			`{lead}you (?:may|can|could|are allowed to|are free to|should feel free to)(?: now| please)? .*(?:again|now|as before|after all)$`,
			`{lead}feel free to .*(?:again|now|after all)$|it(?:'s| is) (?:fine|ok|okay|alright|all right|allowed) (?:for you )?to .*(?:again|now|after all)$`,
			`{lead}(?:you(?: can| may)? (?:no longer|don't|do not|needn't|need not)|(?:i|we) (?:no longer|don't|do not) (?:have to|need|want|wish|care|mind|insist)) .*(?:any ?more|any longer)$|you no longer (?:have|need) to|(?:i|we) no longer (?:want|need|wish|care|insist|mind)`,
			`no (?:need|longer necessary|longer needed|longer required) to|no longer (?:appl(?:y|ies)|valid|holds?|counts?|matters?|relevant|in force|necessary|needed|required|need to|have to)|(?:doesn't|does not|don't|do not|isn't|is not|aren't) (?:apply|count|matter|hold|relevant|valid|important|necessary|needed|have to .*|need to .*) any ?(?:more|longer)`,
			`{lead}(?:you can|you may) (?:stop|quit|skip) `, `{lead}i take (?:it )?back `, `{lead}(?:i'm|i am|we're|we are) (?:no longer|not) {diet}.*|{lead}(?:i'm|i am) not .* any ?more$`,
		},
		amends: []string{
			`{lead}(?:make (?:it|that)|let's (?:make it|say|go with|use)|say|raise it to|increase it to|lower it to|change (?:it|that) to|set it to|rather|better|sorry ,) .*(?:\d|{lang})`,
			`{lead}(?:raise|increase|lower|reduce|change|set|extend|cut|up|bump) (?:the|my|our) .* to `,
			`{lead}(?:{tell}|use|give|write|call|switch|go|change)(?: back)? .*(?:instead|again|after all|rather)(?: please)?$|{lead}(?:switch|change|go)(?: back)? to `,
			`{lead}(?:you|we) (?:can|may|could)(?: now)? .*(?:{mark}|up to \d)|{mark} ,? ?(?:you|we) (?:can|may|could) `,
			`(?:^|, )(?:\S+ ){0,2}(?:i|we) (?:can|could|may)(?: \w+)? (?:go|spend|pay|afford|stretch)(?: \S+){0,3} {money}`,
			`instead of|rather than|change of plans?`,
		},
		never: []string{
			`(?:^|, |\b)(?:he|she|they|everyone|people|who|boss|mom|mum|dad|mother|father|brother|sister|doctor|teacher|friend|manager|manual|book|article|sign|guide|policy|wife|husband|docs|\w+'s|motto|saying) (?:always |once |just |also )?(?:says?|said|told|tells|wrote|writes|asked|asks|insists?|insisted|recommends?|recommended|advised)\b`,
			`^(?:error|warning|system|assistant|tool|notice) ,|^i (?:used|bought|took|wrote|ate|drank|visited|watched|played) `,
			`never mind$|never (?:say never|give up|too late|gets old|ending)|always look on the bright side|(?:^|, )(?:please )?(?:don't|do not|dont) \w+ (?:it|that|this|them|me|anything) (?:yet|now|right now|today)$|remember (?:when|the time|how|, you)|don't (?:worry|mention it|be shy|hesitate|give up|you|know|think|sweat)|long time no`,
		},
		request: `(?:(?:please|hey|hi|so|and|but|ok|also|thanks) (?:, )?)*(?:can|could|would|will|shall|may i ask you to|might)(?: you| i ask you to)?(?: please| just| also| kindly| perhaps| mind)*|(?:i'd|i would) appreciate it if you could`,
	}
}
