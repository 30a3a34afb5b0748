package standing

// french returns the rules of French.
//
//nolint:funlen,misspell // a table of words of another language
func french() definition {
	return definition{
		name: "fr",
		triggers: `desormais dorenavant partir avenir toujours jamais systematiquement reste restant toutes chaque ne n aucun aucune plus budget depenser euros allergique vegetarien vegetarienne vegan vegane diabetique coeliaque intolerant intolerante
			appelle appelez tutoie tutoyer tutoyez vouvoie vouvoyer vouvoyez parle parlez reponds repondez ecris ecrivez souviens rappelle retiens note notez oublie oubliez evite evitez utilise utilisez uniquement seulement prefere veux voudrais aimerais
			plutot finalement disons passe passons mets changement nouveau besoin peine necessaire utile oblige laisse merci gardez garde sois soyez adresse regle memoire nomme mange mangeons bois attention pas il tous tu allergie concis fil interdiction interdit defense question souhaite apprecierais serais serait plafond maximum regime droit`,
		names: map[string]string{
			"lead":       `(?:^|, )(?:(?:ok|alors|et|mais|aussi|donc|bon|bien|merci|non|oui|stp|svp|s'il te plait|s'il vous plait|veuillez|au fait|finalement|en fait|tu peux|vous pouvez|{mark}) (?:, )?)*`,
			"mark":       `desormais|dorenavant|a partir (?:de maintenant|d'aujourd'hui|de la)|a l'avenir|pour (?:tout )?le reste d(?:e la|u|e cette|e notre) {talk}|(?:durant|pendant) (?:tout(?:e)? )?(?:le reste de )?(?:la|cette|notre) {talk}|jusqu'a nouvel ordre|dans (?:toutes|chacune de) (?:tes|vos|les) {answers}|dans chaque {answers}|(?:a )?chaque fois que|chaque fois|toutes les fois que|systematiquement|en toutes circonstances|par defaut|sans exception|dans (?:ce fil|cet echange|cette {talk})|tout du long|tout le temps|en aucun cas|sous aucun pretexte`,
			"talk":       `conversation|discussion|session|chat|echange|dialogue`,
			"answers":    `reponses?|messages?`,
			"budget":     `(?:de|comme) budget|a depenser|a disposition`,
			"have":       `(?:j'ai|nous avons|on a|je dispose de|nous disposons de)`,
			"notSubject": `je|j'\w+|tu|il|elle|on|nous|vous|ils|elles|c'est|c'etait|ca|ce|qui|que|le|la|les|l'\w+|mon|ma|mes|ton|ta|son|sa|ses|notre|nos|leur|un|une|des|pas|presque|quasi|comme|et|ou|est|a|ai|etait`,
			"diet":       `allergique|vegetarien(?:ne)?s?|vegane?s?|diabetique|coeliaque|(?:intolerante?)|daltonien`,
			"imp":        `\w+(?:e|es|s|ez|ts|ds)(?:-(?:moi|nous|le|la|les))?(?:-(?:le|la|les|moi|en))?`,
		},
		sets: []string{
			`{lead}(?:ne |n')(?:me |m'|nous )\w+(?:e|es|s|ez|ds|ts)(?: \S+)? (?:plus|pas|jamais)\b`,
			`{lead}(?:interdiction|interdit|defense|il est interdit)(?: \w+)? (?:de |d')|(?:^|, )(?:il n'est )?pas question (?:de |d'|que )(?:\S+ )?`,
			`(?:je veux|je voudrais|j'aimerais|je souhaite|je prefere|je desire|je tiens a ce) que (?:tu|vous) (?:m'app\w+|me \w+|nous \w+)`,
			`(?:j'apprecierais|je serais \w+|ce serait \w+|j'aimerais bien) (?:que|si) (?:tu|vous)(?: \S+){0,8}? (?:toujours|jamais|uniquement|seulement|plus|pas)\b`,
			`(?:{mark}) ,? ?(?:on|nous) (?:ne )?\w+(?:e|ons|t)(?: \S+){0,2} (?:toujours|jamais|uniquement|seulement|que|qu'en)\b`,
			`(?:^|, )(?:je|nous) (?:suis|suivons) (?:un|au) (?:\S+ )?regime|(?:tu|vous) (?:n'as|n'avez) (?:le |pas le )droit (?:de|d'|que)`,
			`^(?:pas|aucun|aucune|jamais) (?:de |d')?\S+(?: \S+)? (?:avant|apres|sans) \S+(?: \S+){0,2}$`,
			`(?:mon|notre|le) (?:maximum|plafond de depenses|montant maximal)(?: pour .{1,40})? (?:est|reste|s'eleve|sera)(?: \S+){0,3} ?[€$]?\d`,
			`{lead}(?P<verb>{imp}) (?:\S+ ){0,3}?(?:toujours|systematiquement|uniquement|seulement)(?: |$)`,
			`{lead}(?P<verb2>{imp}) .*(?:{mark})`,
			`(?:{mark}) ,? ?(?:\S+ ){0,0}(?P<verb3>[\w-]+(?:e|es|s|ez|er|ir|re|moi|nous|les|la|le))(?: |$)`,
			`{lead}(?:toujours|systematiquement|jamais|ne jamais|ne pas|ne plus) (?:me |m'|te |y |en )?(?P<verb4>\w+(?:er|ir|re))\b`,
			`{lead}(?:ne |n')(?P<verb5>\S+)(?: \S+){0,3}? (?:jamais|aucune?)\b`, `{lead}jamais (?:de |d')`,
			`(?:^|, )(?:{mark} ,? ?)?(?:tu|vous) (?:ne )?(?:dois|devez|devras|devrez|peux|pouvez) (?:\S+ )?(?:toujours|jamais|systematiquement|uniquement|seulement|plus jamais)`,
			`(?:merci|pense|pensez|penser|veille|veillez|prie|demande|priere) (?:de|a)(?: bien)? (?:toujours|systematiquement|jamais|ne jamais|ne plus|ne pas)`,
			`(?:veuillez|il faut|il faudra) (?:toujours|ne jamais|systematiquement)`,
			`{lead}(?:ne |n')(?:me |m'|nous )?(?:mentionne[sz]?|parlez?|utilis(?:e|ez)|evoqu(?:e|ez)|propos(?:e|ez)|recommand(?:e|ez)|reserv(?:e|ez)|achet(?:e|ez)|envoi(?:e|ez)|envoyez|supprim(?:e|ez)|ajout(?:e|ez)|demand(?:e|ez)|repet(?:e|ez)|cit(?:e|ez)|ecri(?:s|vez)|repond(?:s|ez)|appell(?:e|ez)|appelez|modifi(?:e|ez)|effac(?:e|ez)|touch(?:e|ez)|partag(?:e|ez)|publi(?:e|ez)|traduis(?:ez)?|command(?:e|ez)|depass(?:e|ez)|mets|mettez|fais|faites)(?:-moi)?(?: surtout)? (?:pas|plus|rien)\b`,
			`{lead}(?:evite[sz]?|evitez|arrete[sz]? de|arretez de|cesse[sz]? de) .*(?:dans|pour) (?:tes|vos|toutes|chaque)|{lead}(?:arretes?|arretez|cesse|cessez) (?:de |d')`,
			`(?:{mark}) ,? ?(?:plus |pas |jamais )(?:de |d')|(?:{mark}) ,? ?(?:tu|vous) (?:\w+s|\w+ez)\b|(?:^|, )(?:tous les|toutes les|chaque) \S+(?: \S+){0,2} (?:doivent|doit|devront) |(?:^|, )il ne faut (?:jamais|pas) |{lead}(?:evitez?|evites) (?:les|le|la|l'|tout|toute|de|d')|{lead}pas (?:de |d')(?:emojis?|jargon|abreviations|tableaux?|listes?|argot)`,
			`{lead}(?:reponds|repondez|ecris|ecrivez|parle|parlez|exprime-toi|exprimez-vous|communique)(?:-moi|-nous| moi)?(?: bien| uniquement| seulement| plutot| maintenant| desormais)* (?:en|dans) (?:{lang}|phrases|style|langage|francs)`,
			`{lead}(?:garde|gardez|fais|faites|donne|donnez)(?:-moi)? (?:des|tes|vos|les) reponses (?:\S+ )?(?:plus )?(?:courtes|breves|concises|longues|detaillees|simples)`,
			`(?:tes|vos|toutes tes|toutes vos) reponses (?:doivent|devront|devraient|ne doivent)|{lead}sois (?:plus )?(?:bref|breve|concise?)|{lead}soyez (?:plus )?(?:bref|breve|concise?)`,
			`{lead}(?:appelle|appelez|nomme|nommez)-moi (?P<notCall>\S+)|{lead}(?:tutoie|vouvoie|tutoyez|vouvoyez)-(?:moi|nous)|(?:tu peux|vous pouvez|peux-tu|pouvez-vous)(?: me| desormais| plutot)* (?:tutoyer|vouvoyer|m'appeler)|^m'appeler |(?:on|nous) (?:peut|pouvons) se (?:tutoyer|vouvoyer)|{lead}(?:adresse-toi a moi|adressez-vous a moi)`,
			`^(?:bonjour , |salut , )?(?:je m'appelle|mon (?:nom|prenom) est) `,
			`(?:mon|notre|le) (?:budget|plafond)(?: (?:total|maximum|max))?(?: pour .{1,40})? (?:est|reste|s'eleve|sera|passe|monte|descend)(?: desormais| maintenant)?(?: de| a| d'environ| limite a| fixe a)?(?: \S+){0,2} ?[€$]?\d`,
			`(?:j'ai|nous avons|on a) (?:un|le) budget (?:\S+ )?(?:de|d')`, `(?:je|nous|on) (?:ne |n')?(?:veux|voulons|peux|pouvons|veut|peut|souhaite|voudrais)(?: pas)? (?:pas )?depenser (?:plus|au maximum|au plus|jusqu'a|maximum)`,
			`{lead}(?:souviens-toi|souvenez-vous|rappelle-toi|rappelez-vous|retiens|retenez|note|notez|n'oublie(?:z)? (?:pas|jamais)|garde(?:z)? (?:a l'esprit|en memoire|en tete)|sache|sachez)(?: bien)?(?: ,)? (?:que|qu'\w+|,)? ?(?:je|j'\w+|mon|ma|mes|nous|notre|nos|il ne faut|toujours|jamais)\b`,
			`(?:^|, )(?:et |mais |car )?(?:je suis|nous sommes)(?: \S+){0,2}? {diet}|j'ai (?:une |des )?(?:allergie|allergies|intolerance)|(?:je|nous) ne (?:mange|mangeons|bois|buvons|supporte|tolere) (?:pas|jamais|plus)`,
			`(?:je veux|je voudrais|j'aimerais|je souhaite|je prefere|il faut) (?:que tu|que vous|qu'on)(?: ne)? \S+(?: \S+){0,4}? (?:toujours|jamais|systematiquement|plus|uniquement|seulement|en {lang})|je (?:ne )?(?:veux|voudrais) plus (?:que tu|que vous|de |d')`,
			`{lead}(?:utilise|utilisez|emploie|employez)(?: uniquement| seulement)? (?:le systeme metrique|les unites|des unites|le systeme|les degres|le format)`,
			`je prefere (?:des|les|que) (?:reponses|unites|\S+ reponses)|je prefere (?:etre appelee?|qu'on m'appelle|le tutoiement|le vouvoiement)`,
			`{lead}(?:ne |n')utilis(?:e|ez) que|{lead}(?:ne |n')\S+ que (?:des|les|du|en)\b`,
		},
		notVerbs: `je tu il elle on nous vous ils elles c'est ce les des mes tes ses nos vos leurs tres pas plus mais sans dans apres depuis vers cette notre votre comme elle-meme le la une apres suis sommes etes es etais avons avez as fais-je dans
			est etait sera a ai avait vie vais vas suis-je presque encore moins alors ensuite puis mieux tous toutes bises bisous quelle quelles quels autre autres entre mere pere frere vacances parents enfants
			demain bientot toujours jamais train prix monde personne plus-value voyages`,
		notVerb: `j'\S+|l'\S+|c'\S+|-`,
		withdraws: []string{
			`{lead}(?:oublie|oubliez|laisse tomber|laissez tomber|annule|annulez|ignore|ignorez|supprime|supprimez|abandonne)(?:-moi)? (?:le|la|l'|les|mon|ma|mes|notre|cette|ce que|tout ce que|toutes mes)(?: |\w|$)`,
			`(?:ce n'est|c'est|n'est|n'y a|y a|il n'est) plus (?:la peine|necessaire|utile|besoin|obligatoire|important|valable|valide|d'actualite|une obligation|le cas|requis)`,
			`(?:tu|vous) (?:n'|ne )?(?:as|avez|es|etes|dois|devez|a|est) plus (?:besoin|oblige|obligee|a |l'obligation|tenu)`, `(?:tu|vous) (?:ne )?(?:dois|devez) plus (?:forcement|obligatoirement|necessairement)`,
			`(?:tu|vous) (?:peux|pouvez)(?: maintenant| desormais)? (?:a nouveau|de nouveau|encore|arreter|cesser|recommencer)|(?:tu|vous) (?:peux|pouvez) .*(?:a nouveau|de nouveau)`,
			`(?:ne|n') ?(?:compte|comptent|s'applique|s'appliquent|vaut|valent|tient|importe|est|sont) plus\b|(?:plus besoin|inutile desormais) (?:de|d'|que)|plus besoin`,
			`je ne suis plus {diet}|(?:je|nous) n(?:'|e )(?:ai|avons|veux|tiens) plus (?:de |d'|besoin)(?:budget|limite|regle|que)`,
		},
		amends: []string{
			`{lead}(?:disons|mets|mettons|passe|passons|change|changeons|prends|prenons|augmente|baisse|reduis|plutot|mieux)(?: \S+){0,8}? (?:\d|(?:l')?{lang})`,
			`(?:^|, )(?:tu peux|vous pouvez|on peut) .*(?:{mark}|jusqu'a \d)`,
			`(?:je peux|nous pouvons|on peut)(?: \w+)? (?:aller|monter|depenser|payer|mettre)(?: \S+){0,3} {money}`,
			`{lead}(?:plutot |mais |maintenant )*en {lang}`, `\bplutot\b`, `au lieu de|a la place`,
		},
		never: []string{
			`(?:^|, |\b)(?:il|elle|on|chef|patron|mere|pere|frere|soeur|medecin|professeur|ami|amie|mari|femme|manuel|article|devise) (?:m'|me |l'|nous )?(?:a )?(?:toujours )?(?:dit|disait|dites|demande|ecrit|conseille|recommande|repete)\b`,
			`jamais de la vie|pour toujours$|^plus jamais$|jamais deux sans trois`,
		},
		request: `(?:(?:s'il te plait|s'il vous plait|et|mais|alors|bonjour) (?:, )?)*(?:peux-tu|pourrais-tu|pouvez-vous|pourriez-vous|tu peux|vous pouvez|tu pourrais|est-ce que tu peux|est-ce que vous pouvez|veux-tu|voulez-vous)(?: bien| s'il te plait)*`,
	}
}
