package standing_test

// Written before the rules of the package, by the same author. Rules were made for what they
// missed since: they are no longer held out.

func earlyInstructions() []sample {
	return []sample{
		{"en", "From here on out, only recommend restaurants with vegetarian options."},
		{"en", "Never suggest flights with more than one stop."},
		{"en", "Please address me as Dr. Kowalski."},
		{"en", "Whenever you give me a temperature, use Celsius."},
		{"en", "Do not ever share my phone number with anyone."},
		{"en", "I have a nut allergy, so keep that in mind for all recipes."},
		{"en", "All of your replies should be at most three sentences long."},
		{"en", "For the remainder of this chat, write in British English."},
		{"en", "We can spend at most 1,200 dollars in total."},
		{"en", "Under no circumstances delete anything without asking me first."},
		{"de", "Antworte bitte in Zukunft nur noch mit Stichpunkten."},
		{"de", "Schlage mir niemals Hotels ohne Frühstück vor."},
		{"de", "Für den Rest des Gesprächs gilt: keine Fachbegriffe."},
		{"de", "Ich esse kein Schweinefleisch, bitte berücksichtige das immer."},
		{"de", "Sprechen Sie mich bitte mit Frau Doktor Lehmann an."},
		{"de", "Denk daran, dass ich nur dienstags Zeit habe."},
		{"de", "Mehr als 80 Euro pro Nacht darf es nie kosten."},
		{"de", "Gib Preise stets in Schweizer Franken an."},
		{"de", "Halte dich in allen Antworten kurz."},
		{"de", "Lösch auf keinen Fall Dateien ohne meine Zustimmung."},
		{"fr", "Dorénavant, donne-moi toujours les prix en euros."},
		{"fr", "Ne propose jamais de vols de nuit."},
		{"fr", "Souviens-toi que je suis végétarienne."},
		{"fr", "Pour le reste de la conversation, vouvoie-moi."},
		{"fr", "Je ne veux pas dépenser plus de 300 euros."},
		{"fr", "Évite le jargon technique dans toutes tes réponses."},
		{"fr", "À l'avenir, indiquez systématiquement vos sources."},
		{"fr", "Merci de ne plus utiliser d'émojis."},
		{"fr", "N'envoie aucun courriel sans mon accord."},
		{"fr", "Chaque fois que tu cites un chiffre, précise l'année."},
		{"es", "En adelante, dame siempre las distancias en kilómetros."},
		{"es", "No me recomiendes nunca hoteles sin ascensor."},
		{"es", "Recuerda que soy alérgica a los mariscos."},
		{"es", "Durante el resto de la conversación, háblame de usted."},
		{"es", "No quiero gastar más de 250 euros."},
		{"es", "Evita los tecnicismos en todas tus respuestas."},
		{"es", "Jamás borres archivos sin preguntarme antes."},
		{"es", "Cada vez que menciones una fecha, ponla en formato ISO."},
		{"es", "Todas tus respuestas deben tener como máximo cien palabras."},
		{"es", "Por favor, no uses emojis."},
	}
}

//nolint:misspell // other languages
func earlyChanges() []change {
	return []change{
		{"en", "Please keep your answers under 100 words.", "You can make your answers up to 300 words from now on."},
		{"en", "My budget is 900 dollars.", "I've changed my mind: my budget is 1,100 dollars."},
		{"en", "Call me Robert.", "Actually, just call me Rob."},
		{"en", "Never schedule meetings before 9:00.", "Never schedule meetings before 10:30."},
		{"de", "Mein Budget beträgt 700 Euro.", "Ich erhöhe mein Budget auf 850 Euro."},
		{"de", "Antworte immer auf Englisch.", "Antworte jetzt lieber wieder auf Deutsch."},
		{"de", "Bitte sieze mich.", "Du kannst mich ab jetzt duzen."},
		{"fr", "Réponds toujours en anglais.", "Finalement, réponds plutôt en français."},
		{"fr", "Mon budget est de 600 euros.", "Mon budget passe à 750 euros."},
		{"fr", "Appelle-moi Alexandre.", "Appelle-moi plutôt Alex."},
		{"es", "Mi presupuesto es de 500 euros.", "Mejor sube mi presupuesto a 650 euros."},
		{"es", "Responde siempre en inglés.", "Ahora prefiero que respondas en español."},
		{"es", "Llámame Francisco.", "Mejor llámame Paco."},
	}
}

func earlyWithdrawals() []change {
	return []change{
		{"en", "Never suggest seafood restaurants.", "It's fine to suggest seafood restaurants again."},
		{"en", "My budget is 400 pounds.", "The budget doesn't matter anymore."},
		{"en", "Always include a summary at the end.", "You can stop including a summary at the end."},
		{"de", "Verwende keine Emojis.", "Emojis darfst du wieder verwenden."},
		{"de", "Mein Budget liegt bei 1.000 Euro.", "Vergiss die Sache mit dem Budget."},
		{"de", "Nenne immer deine Quellen.", "Du musst deine Quellen nicht mehr nennen."},
		{"fr", "N'utilise jamais d'émojis.", "Tu peux de nouveau utiliser des émojis."},
		{"fr", "Mon budget est de 300 euros.", "Oublie le budget."},
		{"fr", "Cite toujours tes sources.", "Tu n'as plus besoin de citer tes sources."},
		{"es", "Nunca uses emojis.", "Ya puedes volver a usar emojis."},
		{"es", "Mi presupuesto es de 200 euros.", "Olvida lo del presupuesto."},
		{"es", "Cita siempre tus fuentes.", "Ya no tienes que citar tus fuentes."},
	}
}

func earlyNegatives() []string {
	return []string{
		"My neighbor never mows his lawn.",
		"Did you ever visit Lisbon?",
		"From now on the shop opens at nine.",
		"We never agreed on a budget.",
		"Please send me the report by Friday.",
		"Always a pleasure talking to you!",
		"I have always preferred the sea to the mountains.",
		"The manual says to always unplug the device first.",
		"Meine Oma hat mich immer Spatz genannt.",
		"Warum antwortet er nie auf meine Mails?",
		"Ab jetzt wird es kälter.",
		"Wie groß ist mein Budget eigentlich?",
		"Ich vergesse immer meinen Schlüssel.",
		"Elle ne répond jamais au téléphone.",
		"Est-ce que tu réponds toujours aussi vite ?",
		"J'ai toujours aimé la montagne.",
		"Désormais, le train part à huit heures.",
		"Mi hermano siempre llega tarde.",
		"¿Por qué nunca me llamas?",
		"A partir de ahora hace más frío.",
		"Nunca he estado en Perú.",
		"Can you translate this sentence into Dutch?",
		"Schreib mir bitte eine kurze Mail an den Vermieter.",
		"Traduce este texto al inglés, por favor.",
	}
}

// unusualInstructions were written after the first rules, in wordings that none was made for.
// 9 of 26 were recognized then. Rules were made for the others since: they are no longer held
// out.
func unusualInstructions() []sample {
	return []sample{
		{"en", "Every recipe you suggest needs to be nut-free."},
		{"en", "I'd appreciate it if you never brought up politics."},
		{"en", "Our spending cap is 3,000 dollars."},
		{"en", "Stick with Python 3.8 syntax throughout."},
		{"en", "You're only allowed to touch files under src."},
		{"en", "Please write to me in Portuguese from today on."},
		{"en", "I'm on a strict keto diet."},
		{"en", "No phone calls before ten, ever."},
		{"de", "Meine Obergrenze sind 900 Euro."},
		{"de", "Formuliere ab sofort alles in Leichter Sprache."},
		{"de", "Bitte geh nie davon aus, dass ich ein Auto habe."},
		{"de", "Ich möchte gesiezt werden."},
		{"de", "Zitate übersetzt du mir bitte immer."},
		{"de", "Für dich bin ich einfach Jo."},
		{"fr", "Ne me tutoie plus."},
		{"fr", "Tiens toujours compte de mon fauteuil roulant."},
		{"fr", "Mon plafond est fixé à 900 euros."},
		{"fr", "Dans ce fil, on parle uniquement anglais."},
		{"fr", "Interdiction de contacter mon patron."},
		{"fr", "Je souhaite que vous m'appeliez Maître."},
		{"es", "Mi tope son 900 euros."},
		{"es", "Que ninguna respuesta pase de cien palabras."},
		{"es", "Ten siempre en cuenta que voy en silla de ruedas."},
		{"es", "Prohibido contactar con mi jefe."},
		{"es", "Desde hoy escríbeme solo en portugués."},
		{"es", "Quiero que me trates de usted."},
	}
}
