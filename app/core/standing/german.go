package standing

// german returns the rules of German.
//
//nolint:funlen,misspell // a table of words of another language
func german() definition {
	return definition{
		name: "de",
		triggers: `immer nie niemals stets jetzt sofort heute nun zukunft zukuenftig kuenftig fortan rest weiteren weiteres allen alle jeder jedes jede grundsaetzlich generell keinen auf weiterhin kein keine keinerlei nicht bitte
			nenn nenne nennen duz duze duzen siez sieze siezen sprich sprechen budget euro ausgeben merk merke merken denk denke denken beachte vergiss vergessen allergisch allergie vegan vegetarier vegetarierin vegetarisch veganer
			unvertraeglichkeit intolerant esse trinke vertrage halt halte halten antworte antworten antwort schreib schreibe rede nur ausschliesslich moechte will name heisse doch lieber stattdessen mehr wieder bevorzuge darf mach wechsle zoeliakie diabetiker diabetikerin veganerin fass fasse sind vermeide vermeiden ignoriere nussallergie laktoseintoleranz glutenunvertraeglichkeit preise maximal durchweg wenn obergrenze hoechstgrenze ausgabengrenze tabu verboten untersagt ernaehre diaet dich formuliere werden sag sage sagen verfuegung`,
		names: map[string]string{
			"lead": `(?:^|, )(?:(?:ok|okay|also|und|aber|ach|dann|gut|danke|bitte|noch was|uebrigens|nein|ja|einfach|doch|hallo|hi|aber bitte|{mark}) (?:, )?)*`,
			"mark": `ab (?:jetzt|sofort|heute|nun)|von (?:nun|jetzt|heute|hier) (?:an|ab)|in zukunft|zukuenftig|kuenftig|fortan|(?:fuer|waehrend) (?:den |des )?(?:(?:ganzen )?rest(?:s|es)? )?(?:des|der|dieses|dieser|unseres|unserer|die|den|das|diese|dieses)(?: ganzen?| gesamten?)? {talk}|im weiteren (?:gespraech|verlauf)|bis auf weiteres` +
				`|(?:in|bei) (?:allen|all|jeder)(?: deinen| ihren| deiner| ihrer| weiteren)? {answers}|jedes mal wenn|jedes mal|immer wenn|wann immer|grundsaetzlich|generell|standardmaessig|unter keinen umstaenden|auf keinen fall|ohne ausnahme|durchweg|die ganze zeit(?: ueber)?`,
			"talk":    `gespraechs?|unterhaltung|chats?|sitzung|konversation|dialogs?`,
			"answers": `antworten|antwort|nachrichten|nachricht`,
			"adverb":  `immer|nie|niemals|nie mehr|stets|grundsaetzlich|auf keinen fall|unter keinen umstaenden|nur noch|ausschliesslich|systematisch|nur|nicht mehr|keine?[nrms]?|keinerlei`,
			"imp": `antworte?|schreibe?|verwende?|benutze?|benuetze?|nutze?|nenne?|rufe?|sprich|rede?|gib|mache?|mach|zeige?|schlage?|empfiehl|erwaehne?|erwaehn|halte?|halt|lass|lasse|frage?|sage?|sag|fuege?|formatiere?|schicke?|sende?|buche?|kaufe?|loesche?|loesch|beginne?|beende?|erklaere?|uebersetze?|fasse?|zitiere?|achte?|beachte?|vermeide?|ignoriere?|fass|pruefe?|rechne?|runde?|nimm|lies|setze?|stelle?|behandle|veroeffentliche?|ergaenze?|bestelle?|plane?|kommentiere?|beruecksichtige?|verzichte?|unterlasse?|biete?|ueberschreibe?|aendere?|entferne?|speichere?|starte?|fuehre?|teile?|verrate?|liste?|liefere?|orientiere?|bleibe?|bleib|sei|geh|gehe|wiederhole?|entschuldige?|bevorzuge?|konzentriere?|\w+iere|gestalte?|verfasse?|sortiere?|trage?|melde?|merke?|zaehle?|warte?|richte?` +
				`|\w+(?:en|rn|ln) sie`,
			"budget": `zur verfuegung|budget|zum ausgeben`,
			"have":   `(?:ich habe?|wir haben|habe ich|haben wir)`,
			"diet":   `allergisch|vegan|vegetarisch|vegetarier(?:in)?|veganer(?:in)?|diabetiker(?:in)?|(?:laktose|gluten|fruktose)intolerant|farbenblind`,
		},
		sets: []string{
			`(?:^|, )(?:ich (?:waere|faende|haette)|mir waere|es waere|das waere|mich wuerde)(?: \S+){1,4} (?:, )?wenn (?:du|sie)(?: \S+)*? (?:{adverb}|nicht)(?: |$)`,
			`(?:^|, )(?:ich|wir) (?:moechten?|will|wollen|wuensche|wuenschen)(?: \S+){0,5} (?:gesiezt|geduzt|genannt|angesprochen|angeredet) werden|(?:^|, )fuer (?:dich|sie|euch) (?:heisse ich|bin ich (?:einfach|nur|weiterhin|immer noch)) `,
			`^(?:\S+ ){1,4}(?:ist|sind|bleibt|bleiben) (?:(?:fuer dich |dir )(?:streng )?(?:untersagt|verboten)|(?:fuer dich |dir |hier |absolut )*tabu)$|^(?:\S+ ){1,3}(?:\w+st du|\w+en sie) (?:mir |uns |mich |dich )?(?:bitte )?(?:immer|nie|niemals|stets|grundsaetzlich|nur)(?: |$)`,
			`^keine?n? \S+(?: \S+)? (?:vor|nach|ohne) \S+(?: \S+){0,2}$|^keine?n? \S+(?: \S+){0,6} , (?:niemals|nie|bitte|punkt|grundsaetzlich|danke)$`,
			`(?:^|, )(?:und |aber |auch )*(?:ich|wir) (?:ernaehre|ernaehren|lebe|leben) (?:mich |uns )?(?:\S+ )?(?:vegan|vegetarisch|koscher|halal|ketogen|glutenfrei|laktosefrei|rohkoestlich)|(?:ich|wir) (?:mache|halte|machen|halten) (?:\S+ )*diaet`,
			`(?:meine|unsere|die) (?:\w+ )?(?:obergrenze|hoechstgrenze|ausgabengrenze|preisgrenze|schmerzgrenze)(?: fuer .{1,40})? (?:ist|liegt|betraegt|bleibt|sind)(?: \S+){0,4} [€$]?\d`,
			`{lead}(?:geh|gehe|gehen sie) (?:bitte )?(?:nie|niemals|immer|nicht) davon aus`,
			`{lead}{imp}(?: \S+| ,)*? {adverb}(?: |$)`,
			`{lead}{imp} .*(?:{mark})`,
			`{mark} ,? ?(?:gilt|bitte|{imp}|\w+st du|duzen|siezen)`,
			`^(?:{mark}) (?P<verb>\S+)(?: \S+)* (?:\w+en|bitte)$`,
			`{lead}(?:immer|nie|niemals|stets|grundsaetzlich|niemals mehr) (?P<verb2>\S+)(?: \S+)* \w+(?:en|ern|eln)$`,
			`\bbitte (?:\S+ ){0,4}?(?:immer|nie|niemals|stets|grundsaetzlich|ausschliesslich|nur noch|keine?[nrms]?)\b|(?:^|, )(?:immer|nie|niemals|stets|grundsaetzlich|ausschliesslich|nur noch|nur|keine?[nrms]?) .*bitte$|(?:immer|stets|nie|niemals) bitte`,
			`(?:du sollst|du darfst|du musst|sie sollen|sie duerfen|sie muessen|du solltest|sie sollten|darfst du|sollst du|musst du|duerfen sie|sollen sie|muessen sie)(?: \S+| ,)*? (?:{adverb}|nicht)(?: |$)`,
			`{lead}(?:erwaehne?n?|sprich|rede?|schreibe?|sage?|sag|nenne?n?|verwende?n?|benutze?n?|nutze?n?|buche?n?|loesche?n?|sende?n?|schicke?n?|schlage?n?|ruf|rufe?n?|aendere?|ueberschreibe?n?|veroeffentliche?n?|frage?n?|sprechen|reden)(?: sie)?(?: \S+)*? nicht\b`,
			`{lead}(?:antworte|schreibe?|sprich|rede|antworten sie|schreiben sie|sprechen sie|kommuniziere)(?: mir| mit mir| bitte| nur| jetzt| lieber| wieder)* (?:auf|in) (?:{lang}|\w+en saetzen|stichpunkten|stichworten|einfacher sprache)`,
			`{lead}(?:halte?|halten sie) (?:dich|sich|deine|ihre|die|alle|alle deine) (?:\S+ )*(?:kurz|knapp|kuerzer|einfach)`,
			`{lead}(?:fasse?|fassen sie) (?:dich|sich) |{lead}(?:vermeide|vermeiden sie) |^(?:budget|mein budget|unser budget|das budget) ?(?:,|sind|ist|von) (?:\S+ )?[€$]?\d`,
			`(?:{mark}) ,? ?(?:bitte )?(?:keine?[nrms]?|nur|nicht mehr|immer|nie|niemals|maximal|hoechstens) |^(?:alle|jede[rs]?|saemtliche) \S+ bitte |(?:^|, )(?:es|das|der preis|die kosten) (?:darf|duerfen|soll|sollen|muss) (?:nie|niemals|immer|hoechstens|maximal)\b`,
			`(?:deine|ihre|alle|alle deine) antworten (?:sollen|muessen|sollten|duerfen)|^(?:bitte )?(?:nur )?(?:kurze|knappe|ausfuehrliche|lange) antworten`,
			`(?:^|, )(?:bitte |und |aber |{mark} |du kannst |du darfst |sie koennen |sie duerfen |gerne? |kannst du |darfst du )*(?:nenne? mich|nennen sie mich|duz(?:e|en sie)? mich|siez(?:e|en sie)? mich|sprich mich|sprechen sie mich) ?(?:\S+ ){0,6}\S*`,
			`(?:du kannst|du darfst|sie koennen|sie duerfen|lass uns|wir koennen)(?: \S+){0,4} (?:duzen|siezen|nennen)`,
			`^(?:hallo |hi |, )*(?:mein name ist|ich heisse) `,
			`(?:mein|unser|das|unser gesamtes) (?:\w+ )?(?:budget|limit|ausgabenlimit)(?: fuer .{1,40})? (?:ist|liegt|betraegt|bleibt|waere|sind)(?: \S+){0,4} [€$]?\d`,
			`(?:ich habe|wir haben)(?: \S+){0,2} ein budget von|(?:ich|wir) (?:erhoehe|senke|erhoehen|senken|setze) (?:mein|unser|das) budget`,
			`(?:ich|wir) (?:moechten?|wollen?|will|koennen|kann|habe|haben|darf|duerfen)(?: insgesamt| nur| dafuer)* (?:hoechstens|maximal|nicht mehr als|nur|bis zu)(?: insgesamt)? \d`,
			`(?:mehr als|hoechstens|maximal|ueber) \d[\d.,]* ?(?:€|euro|eur|dollar|franken|chf|usd|\$|%)(?: \S+){0,6} (?:darf|duerfen|soll|sollen|will|moechte|kann)`,
			`{lead}(?:immer )?(?:merke? dir|merken sie sich|denke? (?:immer )?(?:bitte )?daran|denken sie (?:immer )?(?:bitte )?daran|beachte|beachten sie|beruecksichtige|beruecksichtigen sie|vergiss nicht|vergessen sie nicht|vergiss nie)(?: bitte| immer)*(?: ,)?(?: dass)?(?: ,)? (?:ich|mein|meine|wir|unser|unsere|nur|keine|alle|nie|immer|der|die|das)\b`,
			`(?:^|, )(?:(?:und|aber|auch|da|weil|uebrigens) )*(?:ich bin|wir sind|bin ich)(?: \S+){0,3}? {diet}|(?:ich habe|wir haben|habe) (?:eine |einen )?\w*(?:allergie|unvertraeglichkeit|zoeliakie)`,
			`(?:^|, )(?:und |aber |auch )*(?:ich|wir) (?:esse|essen|trinke|trinken|vertrage|vertragen)(?: grundsaetzlich| leider)? (?:keine?n?|nie|nur) `,
			`(?:ich moechte|ich will|ich haette gerne?|ich wuensche mir|mir ist wichtig|ich wuerde mir wuenschen) ,? ?dass (?:du|sie)(?: \S+)*? (?:{adverb}|nicht|{mark})`,
			`{lead}(?:verwende|benutze|nutze|verwenden sie|rechne)(?: bitte)? (?:nur |das |in )?(?:metrische|imperiale|metrischen|celsius|kilometer|ss-schreibung)`,
			`ich (?:bevorzuge|mag|moechte|haette lieber|haette gerne?) (?:immer )?(?:kurze|knappe|lange|ausfuehrliche|keine|antworten|lieber)`,
			`(?:bitte )?(?:beruecksichtige|beachte|bedenke) das (?:immer|bei|in|fuer|stets)|bitte .*(?:immer|stets) (?:beruecksichtigen|beachten|bedenken)`,
		},
		notVerbs: `ich er sie es wir man das der die wird werde werden gehe ist war hat habe wieder noch so mehr wenn mein meine sein ihr wird's bin hab`,
		notVerb:  `-`,
		withdraws: []string{
			`(?:gilt|gelten|zaehlt|zaehlen|brauche ich|brauchen wir|ist|sind|spielt|will ich|moechte ich)(?: \S+){0,3} nicht mehr|nicht mehr (?:noetig|wichtig|notwendig|gueltig|relevant|gilt|gelten)|(?:spielt|spielen) keine rolle mehr|ist (?:hinfaellig|aufgehoben|vom tisch|egal)`,
			`(?:musst|brauchst|sollst|muessen|brauchen|sollen)(?: du| sie)?(?: \S+)*? nicht (?:mehr|laenger)`,
			`(?:darfst|kannst|duerfen|koennen)(?: du| sie)?(?: \S+)*? wieder(?: |$)`,
			`{lead}(?:vergiss|vergessen sie|streiche?|streichen sie|ignoriere?|lass|verwirf)(?: bitte)? (?:das|die|den|mein|meine|meinen|was ich|alles was ich|alle meine)\b`,
			`{lead}(?:du|sie) (?:kannst|koennen) (?:\S+ )*(?:weglassen|aufhoeren)`,
			`(?:ich bin|wir sind) (?:nicht mehr|kein|keine) (?:\S+ )*{diet}`,
		},
		amends: []string{
			`{lead}(?:mach|mache|machen wir|sagen wir|nimm|erhoehe?|senke?|setze?|aendere?|stell|wechsle|wechseln sie|dann|lieber|besser)(?: \S+){0,8}? (?:\d|{lang})`,
			`{lead}(?:doch |lieber |jetzt |wieder |dann |bitte )*(?:auf|in) {lang}`,
			`{lead}(?:du kannst|du darfst|sie koennen|sie duerfen) .*(?:{mark}|bis zu \d)|{mark} (?:kannst|darfst|koennen|duerfen) (?:du|sie) `,
			`{lead}(?:sag|sage|sagen sie) (?:\S+ ){1,4}zu mir`,
			`(?:kann|koennen|darf|duerfen)(?: \S+){0,4} {money}(?: \S+){0,2} (?:ausgeben|zahlen|bezahlen|gehen)`,
			`(?:doch lieber|stattdessen|anstatt|statt dessen|lieber doch)`,
		},
		never: []string{
			`(?:er|sie|man|chef|chefin|mutter|vater|bruder|schwester|arzt|aerztin|lehrer|lehrerin|freund|freundin|oma|opa|mann|frau|kollege|kollegin|anleitung|handbuch|artikel|motto) (?:hat |haben )?(?:mir )?(?:immer )?(?:gesagt|sagte|sagt|meint|meinte|schrieb|schreibt|verlangt|steht|empfiehlt)\b`,
			`(?:hat|haben) (?:mir |mich )?(?:\S+ ){0,3}(?:gesagt|geschrieben|genannt)|^(?:nie|immer) (?:wieder|im leben|mit der ruhe)|^(?:schreib|schreibe|erzaehle?|erfinde?) (?:mir )?(?:bitte )?(?:eine?n?) (?:geschichte|gedicht|text|lied|roman|maerchen|brief|witz)\b|^keine (?:ahnung|sorge|angst|zeit)|^kein (?:problem|wunder)|^ich (?:\S+ )?(?:immer|nie)\b|{mark} \w+ (?:ich|er|wir|es|man)\b`,
		},
		request: `(?:(?:bitte|hey|hallo|und|aber|ok) (?:, )?)*(?:kannst du|koenntest du|wuerdest du|koennen sie|koennten sie|wuerden sie|magst du|kannst du|koenntet ihr)`,
	}
}
