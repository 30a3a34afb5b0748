package standing_test

// The cases of this file were written before the rules were run on them (SHA-256
// 7a6cfc0bead22be260e71436275d9a39ee1c044e8a7b411983646f53588739f7 without this comment). At
// first 15 of 40 wordings, 18 of 40 changes and 12 of 20 withdrawals were right.

// informalChanges are what different users would write, also with errors and with other
// things around them. ‹…› marks the sentence that stands, where it is not the whole message.
//
//nolint:misspell // other languages
func informalChanges() []change {
	return []change{
		{"en", "Always answer in French.", "Hmm, my French isn't good enough, let's go back to English."},
		{"en", "My budget is 600 euros.", "Good news, we got a bonus. ‹So we can spend up to 800 euros now.›"},
		{"en", "Don't schedule anything before 9am.", "Don't schedule anything before 8am after all."},
		{"en", "Call me Mr. Harrison.", "no need to be so formal, call me Jim"},
		{"en", "Keep your replies under 50 words.", "ok 50 words is too short, make it 120"},
		{"en", "Always write code in Python.", "From now on write code in Go instead."},
		{"en", "I'm a vegetarian.", "btw I started eating fish again so I'm pescatarian now"},
		{"en", "Use a formal tone from now on.", "Could you use a more casual tone from now on?"},
		{"en", "Always give temperatures in Fahrenheit.", "celsius instead pls"},
		{"en", "Never book hotels over $150 per night.", "Hotels up to $200 a night are ok now."},
		{"de", "Antworte ab jetzt bitte auf Englisch.", "Ach, mach doch lieber wieder deutsch."},
		{"de", "Unser Budget liegt bei 2000 Euro.", "Wir haben uns entschieden, es dürfen jetzt 2500 Euro sein."},
		{"de", "Bitte keine Anrufe vor 8 Uhr.", "Bitte keine Anrufe vor 9 Uhr, das ist mir sonst zu früh."},
		{"de", "Nenn mich Herr Baumann.", "Du kannst ruhig Klaus sagen."},
		{"de", "Halte deine Antworten unter 100 Wörtern.", "100 wörter sind zu wenig, nimm 200"},
		{"de", "Verwende immer Python für Beispiele.", "Verwende ab sofort Go für Beispiele."},
		{"de", "Ich bin Vegetarierin.", "Übrigens esse ich seit kurzem vegan."},
		{"de", "Schreib immer förmlich.", "Schreib ab jetzt lockerer, das klingt so steif."},
		{"de", "Gib Entfernungen immer in Kilometern an.", "Gib Entfernungen ab jetzt in Meilen an."},
		{"de", "Schick mir die Zusammenfassung immer montags.", "Schick mir die Zusammenfassung ab jetzt freitags."},
		{"fr", "Réponds toujours en anglais stp.", "Bon, on repasse au français."},
		{"fr", "Notre budget est de 800 euros.", "On a un peu plus finalement, 950 euros de budget."},
		{"fr", "Ne m'appelle jamais avant 9 h.", "Tu peux m'appeler dès 8 h maintenant."},
		{"fr", "Appelle-moi Monsieur Dupont.", "Dis plutôt Jean."},
		{"fr", "Limite tes réponses à 80 mots.", "80 mots c'est trop court, passe à 150."},
		{"fr", "Utilise toujours Python pour les exemples.", "Utilise Go pour les exemples à partir de maintenant."},
		{"fr", "Je suis végétarien.", "Au fait je suis devenu végan."},
		{"fr", "Garde toujours un ton formel.", "Prends un ton plus détendu désormais."},
		{"fr", "Donne toujours les distances en kilomètres.", "Donne plutôt les distances en miles."},
		{"fr", "Mets toujours la date au format américain.", "Mets désormais la date au format européen."},
		{"es", "Contesta siempre en inglés.", "Oye, volvamos al español."},
		{"es", "Nuestro presupuesto son 700 euros.", "Hemos ahorrado un poco, ahora podemos gastar hasta 900 euros."},
		{"es", "No me llames nunca antes de las 9.", "No me llames nunca antes de las 8, por favor."},
		{"es", "Llámame señor García.", "Puedes decirme Pepe."},
		{"es", "Tus respuestas deben tener menos de 80 palabras.", "80 palabras es poco, que sean 150"},
		{"es", "Usa siempre Python en los ejemplos.", "A partir de ahora usa Go en los ejemplos."},
		{"es", "Soy vegetariana.", "Ahora soy vegana."},
		{"es", "Usa siempre un tono formal.", "Usa un tono más cercano de ahora en adelante."},
		{"es", "Da siempre las temperaturas en Fahrenheit.", "Mejor da las temperaturas en Celsius."},
		{"es", "Pon siempre las fechas en formato americano.", "pon las fechas en formato europeo a partir de ahora porfa"},
	}
}

func informalWithdrawals() []change {
	return []change{
		{"en", "Never use emojis.", "Emojis are fine now."},
		{"en", "My budget is 500 dollars.", "Money's no object anymore."},
		{"en", "Always cite sources.", "you don't need to cite sources any more, thx"},
		{"en", "Keep answers under 100 words.", "Forget the word limit."},
		{"en", "I'm on a low-carb diet.", "I'm not on a diet anymore."},
		{"de", "Verwende nie Emojis.", "Emojis sind jetzt doch okay."},
		{"de", "Mein Budget liegt bei 500 Euro.", "Das Budget ist jetzt egal."},
		{"de", "Nenne immer die Quellen.", "Quellen brauch ich nicht mehr."},
		{"de", "Halte dich immer kurz.", "Du musst dich nicht mehr kurz halten."},
		{"de", "Plane nie etwas am Wochenende.", "Am Wochenende geht jetzt doch wieder was."},
		{"fr", "N'utilise jamais d'émojis.", "Les émojis, c'est ok maintenant."},
		{"fr", "Mon budget est de 500 euros.", "Laisse tomber le budget."},
		{"fr", "Cite toujours tes sources.", "t'as plus besoin de citer tes sources"},
		{"fr", "Limite tes réponses à 100 mots.", "Oublie la limite de mots."},
		{"fr", "Ne prévois jamais rien le week-end.", "Tu peux à nouveau prévoir des choses le week-end."},
		{"es", "Nunca uses emojis.", "Los emojis ya me parecen bien."},
		{"es", "Mi presupuesto es de 500 euros.", "Ya no importa el presupuesto."},
		{"es", "Cita siempre las fuentes.", "ya no hace falta que cites las fuentes"},
		{"es", "No escribas más de 100 palabras por respuesta.", "Olvida el límite de palabras."},
		{"es", "No planees nunca nada el fin de semana.", "Ya puedes planear cosas el fin de semana."},
	}
}

//nolint:misspell // other languages
func informalWordings() []sample {
	return []sample{
		{"en", "hey quick thing before we start, pls dont use any emojis ever"},
		{"en", "I'm planning a trip to Oslo in May. ‹Oh and I never fly, so only trains and ferries.› Any ideas?"},
		{"en", "alwyas answer in english please"},
		{"en", "Our daughter uses a wheelchair, so everything has to be step-free."},
		{"en", "Just so you know, I can't have any dairy."},
		{"en", "Thanks, that helps. ‹Next time and every time after that, show the formula first.›"},
		{"en", "don't ever assume I'm in the US"},
		{"en", "I want all amounts in Swiss francs."},
		{"en", "max 3 bullet points per answer pls"},
		{"en", "You must not touch the production database."},
		{"de", "hi, bitte immer duzen, danke :)"},
		{"de", "Ich suche ein Zelt für den Sommer. ‹Mehr als 200 Euro will ich auf keinen Fall ausgeben.› Was gibt es da?"},
		{"de", "antworte mir imer auf deutsch bitte"},
		{"de", "Ich vertrage keine Nüsse."},
		{"de", "Ach ja, und bitte nie mehr als fünf Sätze."},
		{"de", "Wir haben einen Hund, also nur Unterkünfte mit Haustiererlaubnis."},
		{"de", "Alle Preise bitte inklusive Mehrwertsteuer."},
		{"de", "Rühr die Produktionsdatenbank bloß nicht an."},
		{"de", "Du sprichst mit mir ab jetzt wie mit einem Zehnjährigen."},
		{"de", "Ich will, dass jede Antwort mit einem Fazit endet."},
		{"fr", "coucou, juste une chose, jamais d'émojis stp"},
		{"fr", "Je prépare un voyage à Rome. ‹Surtout, pas de vols de nuit.› Tu as des idées ?"},
		{"fr", "repond toujours en francais stp"},
		{"fr", "Je ne supporte pas le lactose."},
		{"fr", "Au fait, trois phrases maximum par réponse."},
		{"fr", "On voyage avec un chien, donc uniquement des logements qui les acceptent."},
		{"fr", "Tous les prix en euros, s'il te plaît."},
		{"fr", "Ne touche surtout pas à la base de production."},
		{"fr", "Explique-moi toujours les choses comme à un enfant."},
		{"fr", "Je veux que chaque réponse finisse par une conclusion."},
		{"es", "hola, una cosa, nunca uses emojis porfa"},
		{"es", "Estoy preparando un viaje a Roma. ‹Eso sí, nada de vuelos nocturnos.› ¿Alguna idea?"},
		{"es", "contesta siemrpe en español porfa"},
		{"es", "No tolero la lactosa."},
		{"es", "Ah, y como mucho tres frases por respuesta."},
		{"es", "Viajamos con perro, así que solo alojamientos que los admitan."},
		{"es", "Todos los precios en euros, por favor."},
		{"es", "Ni se te ocurra tocar la base de producción."},
		{"es", "Explícame siempre las cosas como a un niño."},
		{"es", "Quiero que cada respuesta termine con una conclusión."},
	}
}
