package standing

// spanish returns the rules of Spanish.
//
//nolint:funlen,misspell // a table of words of another language
func spanish() definition {
	return definition{
		name: "es",
		triggers: `ahora adelante siempre nunca jamas futuro resto durante todas todos cada no ningun ninguna nada presupuesto gastar euros alergico alergica vegetariano vegetariana vegano vegana diabetico diabetica celiaco celiaca intolerante
			llamame llame llameme tratame trateme tuteame tuteeme hablame hableme responde responda respondeme contesta contestame escribe escriba recuerda recuerde olvides olvida olvide evita evite usa use utiliza utilice solo solamente unicamente prefiero quiero
			mejor pongamos digamos sube baja cambia pasa vuelve volver ya hace falta tienes cuenta deja dejes deje llamo nombre habla hable manten tenga ten como bebo presente sistematicamente defecto sin alergia llamarme todos conciso breve puedo citar tope techo limite maximo prohibido prohibida agradeceria gustaria seria dieta permiso`,
		names: map[string]string{
			"lead":    `(?:^|, )(?:(?:ok|vale|y|pero|tambien|entonces|bueno|bien|gracias|no|si|por favor|porfa|ah|oye|ademas|mejor|{mark}) (?:, )?)*`,
			"mark":    `(?:a partir|desde) de (?:ahora|hoy|este momento)|a partir de (?:ahora|hoy|este momento)|desde (?:ahora|hoy|este momento)|(?:de ahora |de aqui |de hoy )?en adelante|en (?:el|lo) (?:futuro|sucesivo)|(?:durante|por|para|en)(?: todo)? (?:el resto de )?(?:la|esta|nuestra|el|este|toda la) {talk}|hasta nuevo aviso|en (?:todas|cada una de) (?:tus|sus|las) {answers}|en cada {answers}|cada vez que|cada vez|siempre que|sistematicamente|por defecto|sin excepcion|bajo ningun concepto|en ningun caso|bajo ninguna circunstancia|en todo momento|todo el tiempo`,
			"talk":    `conversacion|charla|chat|sesion|dialogo`,
			"answers": `respuestas?|mensajes?`,
			"budget":  `(?:de|como) presupuesto|para gastar|disponibles?`,
			"have":    `(?:tengo|tenemos|dispongo de|disponemos de)`,
			"diet":    `alergic[oa]s?|vegetarian[oa]s?|vegan[oa]s?|diabetic[oa]s?|celiac[oa]s?|intolerantes?|daltonic[oa]`,
			"imp":     `\w*[a-z]{2}(?:a|e|me|lo|la|las|los|nos|le|ced|gan|en|an)|haz|di|pon|ten|se|ve|da|dime|ponlo|ponla|manten`,
		},
		sets: []string{
			`^que (?:(?:ningun|ninguna|todas|todos|cada|una|de|las|los|tus|sus) )+(?:{answers}|precios?|fechas?|textos?|correos?|resultados?)\b`,
			`{lead}(?:queda |esta )?(?:terminantemente |totalmente )?prohibid[oa]s? \w+|(?:^|, )(?:te |le )?(?:queda )?prohibo \w+`,
			`(?:agradeceria|me gustaria|seria \w+|preferiria) que (?:\S+ )?(?:nunca|siempre|no|solo|jamas)\b`,
			`(?:quiero|deseo|prefiero|me gustaria|espero) que (?:me|nos) \w+(?:as|es)\b`,
			`(?:^|, )(?:sigo|seguimos|llevo|hago) una dieta|(?:^|, )(?:estoy|estamos) a dieta|solo tienes permiso|solo (?:puedes|tienes permitido|se te permite) `,
			`^(?:nada de|ningun|ninguna) \S+(?: \S+){0,2} (?:antes|despues|sin) \S+(?: \S+){0,3}$`,
			`(?:mi|nuestro|el) (?:tope|techo|limite|maximo|gasto maximo)(?: de gastos?)?(?: para .{1,40})? (?:es|son|sera|esta en|queda en)(?: \S+){0,2}? ?[€$]?\d`,
			`{lead}(?:siempre|nunca|jamas)(?: me| te| le| lo| la| se| nos| les)* (?P<verb>(?:\w+(?:a|e|as|es|en|an|me|lo|la|ar|er|ir)|haz|di|pon|ten))(?: |$)`,
			`{lead}(?P<verb2>{imp}) (?:\S+ ){0,3}?(?:siempre|sistematicamente|unicamente|solo|solamente)(?: |$)`,
			`{lead}(?P<verb3>{imp}) .*(?:{mark})`,
			`(?:{mark})(?: ,)?(?: por favor)?(?: ,)? (?P<verb4>\w+)(?: |$)`,
			`(?:^|, )(?:y |pero |por favor |, )*no (?:me |te |le |lo |la |nos |se |les )*(?P<verb5>\w+(?:as|es|e|a|en|an))(?: \S+)*? (?:nunca|jamas|ningun|ninguna|nada)\b`,
			`{lead}no (?:me |te |le |lo |la |nos |se |les )*(?:menciones?|hables?|uses?|utilices?|escribas?|respondas?|llames?|recomiendes?|propongas?|sugieras?|reserves?|compres?|envies?|borres?|elimines?|anadas?|incluyas?|preguntes?|repitas?|cites?|modifiques?|cambies?|toques?|compartas?|publiques?|traduzcas?|pidas?|superes?|pongas?|gastes?|agregues?|mandes?|digas?)\b`,
			`{lead}no (?:me |te |le |lo |la |nos |se |les )*(?P<verb7>\w+(?:es|gas|yas|zcas))(?: \S+)* (?:el|la|los|las|un|una|mi|mis|de|del|al|con|sin|antes|para|por)\b`,
			`(?:^|, )(?:tu |usted )?(?:debes?|tienes que|tiene que|has de) (?:siempre|\S+ siempre)|(?:siempre|nunca|jamas) (?:debes?|tienes que|tiene que)|(?:no debes?|no puedes?|no deberas) (?:\S+ )*?(?:nunca|jamas|nada|sin)`,
			`(?:asegurate|asegurese|procura|trata|intenta)(?: de)? (?:siempre|nunca|no)|(?:quiero|me gustaria|prefiero|necesito|espero) que (?:siempre|nunca|no|me|\S+ siempre|respondas|escribas|hables|uses)\b`,
			`{lead}evit[ae]n? .*(?:en|para|con) (?:tus|sus|todas|todos|cada)|{lead}(?:deja|deje) de \w+`,
			`(?:^|, )(?:todos los|todas las|cada) \S+(?: \S+){0,2} (?:deben|debe|tienen que|han de) |{lead}evit[ae]n? (?:los|las|el|la|todo|toda|usar)|{lead}se (?:mas |siempre |muy )?(?:breve|concis[oa]|directo|directa|amable|formal)`,
			`{lead}\w+(?:ar|er|ir) siempre |{lead}(?:llamarme|tutearme|tratarme) `,
			`{lead}(?:nada de|sin) (?:emojis?|jerga|tecnicismos|abreviaturas|tablas|listas)`,
			`{lead}(?:respond[ea]|respondeme|contesta|contestame|conteste|escrib[ea]|escribeme|habl[ae]|hablame|hableme)(?: me| solo| siempre| unicamente| ahora| mejor)* (?:en|con) (?:{lang}|frases|lenguaje|castellano|puntos)`,
			`(?:tus|sus|todas tus|las) respuestas (?:deben|deberan|tienen|no deben|han de)|{lead}(?:da|dame|manten|haz|mantenga|de) (?:las |tus |sus )?respuestas|{lead}se (?:mas )?(?:breve|conciso|concisa)`,
			`{lead}(?:llamame|llameme|me llamas) (?P<notCall>\S+)|{lead}(?:tratame|trateme|hablame|hableme) de (?:tu|usted|vos)|{lead}(?:tuteame|tuteeme)|(?:puedes|puede) (?:llamarme|tutearme|tratarme|hablarme)`,
			`^(?:hola , )?(?:me llamo|mi nombre es) `,
			`(?:mi|nuestro|el) (?:presupuesto|limite|tope)(?: (?:total|maximo))?(?: para .{1,40})? (?:es|sera|sigue siendo|queda|asciende|pasa|sube|baja|ahora es)(?: ahora)?(?: de| a| en| unos)*(?: \S+){0,2}? ?[€$]?\d`,
			`(?:tengo|tenemos) un presupuesto(?: \S+)? de|(?:no )?(?:quiero|queremos|puedo|podemos)(?: solo)? gastar (?:mas|como maximo|hasta|un maximo|solo)`,
			`{lead}(?:recuerda|recuerde|no olvides|no olvide|nunca olvides|ten en cuenta|tenga en cuenta|ten presente|tenga presente|acuerdate de|toma nota de)(?: siempre)? ?(?:que|,)? ?(?:soy|somos|solo|los \S+ no|las \S+ no|no puedo|tengo|tenemos|mi|mis|no|nunca|siempre|estoy|yo|nuestro|nuestra|viajo|vivo|trabajo|como)\b`,
			`(?:^|, )(?:y |pero |porque )?(?:soy|somos)(?: \S+)? {diet}|tengo (?:una )?(?:alergia|intolerancia)|(?:^|, )(?:y )?(?:yo )?no (?:como|bebo|tolero|comemos|bebemos) `,
			`{lead}(?:usa|use|utiliza|utilice|emplea)(?: solo| siempre)? (?:el sistema metrico|unidades|el sistema|grados|el formato)`,
			`prefiero (?:respuestas|las respuestas|que me|que respondas|unidades)`,
			`{lead}(?:solo|unicamente|solamente) (?P<verb6>\w+(?:a|e|me))(?: |$)`,
		},
		notVerbs: `es esta era fue ha he hay habia han hace hacia me te le la lo el una mi mi tu su sus las los un mas muy que quien como cuando donde porque tiene tengo va voy soy fui esta estaba estuve quise quiero puede pudo
			gusta encanta parece dice decia viene vamos nada algo casi igual gracias para sin con en de vez veces juntos juntas ella ellas este esta eso esa todas todos cada solo nunca siempre jamas hasta desde hora
			mama papa hermana madre padre casa vida gente idea persona manana tarde noche importa pasa llega piensa sabe cierra abre empieza sale lleva trabaja vive come duerme llueve ya no
			es eres tienes puedes quieres sabes debes vas vienes crees ves haces dices pones sales comes bebes vives lees escribes entiendes conoces pareces mereces sigues pides sientes duermes mientes pierdes mueves vuelves existes pagas llegas juegas cargas apagas ruegas oyes veces meses pues entonces antes interes despues`,
		notVerb: `\w+(?:aba|abas|aban|ia|ian|aron|ieron|aste|iste|amos|emos|imos|ado|ido|ada|ando|iendo)|-`,
		withdraws: []string{
			`{lead}(?:olvid[ae]|olvidate de|olvidese de|cancel[ae]|anul[ae]|ignor[ae]|quit[ae]|dej[ae]) (?:el|la|los|las|lo|mi|mis|todo lo que|todas mis|ese|esa)\b`,
			`ya no (?:hace falta|es necesario|es preciso|importa|vale|cuenta|aplica|se aplica|rige|es valido|es valida|es importante|sirve|necesitas|necesita|tienes que|tiene que|debes|hay que|quiero|necesito|me importa|son necesarios|son necesarias|soy|somos)|no hace falta .*mas|no importa ya`,
			`(?:puedes|puede|podeis)(?: ya)? (?:volver a|dejar de)|ya (?:puedes|puede)|(?:puedes|puede) .*(?:de nuevo|otra vez)`,
		},
		amends: []string{
			`{lead}(?:que sean|pongamos|digamos|sube|suba|baja|cambia|cambie|cambiemos|pasa|pasemos|subelo|bajalo|dejalo en|ponlo en|mejor)(?: \S+){0,8}? (?:\d|{lang})`,
			`(?:^|, )(?:puedes|puede|podeis) .*(?:{mark}|hasta \d)`,
			`(?:puedo|podemos)(?: \w+)? (?:llegar|subir|gastar|pagar)(?: \S+){0,3} {money}`,
			`{lead}(?:mejor |ahora )*en {lang}`, `en vez de|en lugar de|mejor .*(?:\d|{lang})`,
		},
		never: []string{
			`(?:^|, |\b)(?:el|ella|jefe|jefa|madre|padre|hermano|hermana|medico|profesor|profesora|amigo|amiga|marido|mujer|manual|articulo|lema) (?:me |nos )?(?:ha |siempre )?(?:dicho|dijo|dice|decia|pidio|pide|escribio|recomienda|aconseja)\b`,
			`^nunca (?:mas|se sabe|digas nunca)$|(?:{mark}) (?:todo|nada|hace|la gente|el mundo) |^para siempre$|como siempre|por siempre`,
		},
		request: `(?:(?:por favor|y|pero|oye|hola) (?:, )?)*(?:puedes|podrias|puede|podria|me puedes|podeis)`,
	}
}
