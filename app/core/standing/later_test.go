package standing_test

// laterChanges were written before their rules were looked at. 18 of 30 were right then. Rules
// were made for the others since: they are no longer held out.
//
//nolint:misspell // other languages
func laterChanges() []change {
	return []change{
		{"en", "Always reply in Italian.", "Switch to Spanish, please."},
		{"en", "My budget is 1,200 dollars.", "I can go up to 1,500 dollars now."},
		{"en", "Never schedule meetings before 10:00.", "Never schedule meetings before 9:00, I changed my mind."},
		{"en", "Call me Dr. Weber.", "Just call me Tom."},
		{"en", "Keep every answer under 100 words.", "Make that 200 words."},
		{"en", "Use British spelling.", "Use American spelling from now on."},
		{"en", "Format prices in dollars.", "Please always format prices in euros instead."},
		{"en", "I'm vegetarian.", "I'm vegan now."},
		{"de", "Antworte immer auf Italienisch.", "Wechsle bitte zu Spanisch."},
		{"de", "Mein Budget beträgt 1200 Euro.", "Ich habe jetzt 1500 Euro zur Verfügung."},
		{"de", "Plane keine Termine vor 10 Uhr ein.", "Plane ab sofort keine Termine vor 9 Uhr ein."},
		{"de", "Nenn mich Frau Weber.", "Sag einfach Petra zu mir."},
		{"de", "Sieze mich bitte.", "Du kannst mich jetzt duzen."},
		{"de", "Schreib Preise immer in Dollar.", "Schreib Preise ab jetzt in Euro statt in Dollar."},
		{"de", "Fass dich immer kurz.", "Antworte künftig lieber ausführlich."},
		{"de", "Ich bin Vegetarier.", "Ich bin jetzt Veganer."},
		{"fr", "Réponds toujours en italien.", "Passe à l'espagnol, s'il te plaît."},
		{"fr", "Mon budget est de 1200 euros.", "J'ai finalement 1500 euros de budget."},
		{"fr", "Ne planifie jamais de réunion avant 10 h.", "Ne planifie jamais de réunion avant 9 h finalement."},
		{"fr", "Appelle-moi Madame Petit.", "Appelle-moi plutôt Claire."},
		{"fr", "Vouvoyez-moi, s'il vous plaît.", "On peut se tutoyer maintenant."},
		{"fr", "Écris toujours les prix en dollars.", "Écris désormais les prix en euros."},
		{"fr", "Fais des réponses brèves.", "À partir de maintenant, fais des réponses détaillées."},
		{"es", "Responde siempre en italiano.", "Cambia al francés, por favor."},
		{"es", "Mi presupuesto es de 1200 euros.", "Ahora tengo 1500 euros de presupuesto."},
		{"es", "No programes reuniones antes de las 10.", "A partir de hoy no programes reuniones antes de las 9."},
		{"es", "Llámame señora Ruiz.", "Mejor llámame Carmen."},
		{"es", "Trátame de usted.", "Puedes tutearme ya."},
		{"es", "Escribe siempre los precios en dólares.", "De ahora en adelante escribe los precios en euros."},
		{"es", "Dame respuestas breves.", "Prefiero respuestas largas a partir de ahora."},
	}
}

// laterWordings are unusual ones, written before the rules were looked at. 11 of 40 were
// recognized then.
//
//nolint:misspell // other languages
func laterWordings() []sample {
	return []sample{
		{"en", "For the record, anything above 20 € per night is out of the question."},
		{"en", "I'd appreciate it if all your replies came with a bullet list."},
		{"en", "House rule: no spoilers."},
		{"en", "As long as we talk, stick to Celsius."},
		{"en", "Emojis are a no-go for me."},
		{"en", "Under no circumstances should you contact my landlord."},
		{"en", "One thing that goes for everything below: no jargon."},
		{"en", "Each time you quote a price, add the tax."},
		{"en", "I'm colour-blind, so skip red and green in charts."},
		{"en", "Let's keep this formal throughout."},
		{"de", "Grundregel: keine Anglizismen."},
		{"de", "Auf keinen Fall darf mein Chef davon erfahren."},
		{"de", "Mehr als 50 € pro Nacht sind nicht drin."},
		{"de", "Solange wir hier schreiben, bleib bei Celsius."},
		{"de", "Jedes Mal, wenn du einen Preis nennst, rechne die Steuer dazu."},
		{"de", "Fachjargon kannst du dir sparen, und zwar durchgehend."},
		{"de", "Ich sitze im Rollstuhl, also nur barrierefreie Hotels."},
		{"de", "Was immer ich frage: Nenn zuerst das Ergebnis."},
		{"de", "Mir wäre lieb, wenn jede Antwort eine Liste enthielte."},
		{"de", "Finger weg von meinem Kalender."},
		{"fr", "Règle de base : pas d'anglicismes."},
		{"fr", "En aucun cas tu ne dois contacter mon propriétaire."},
		{"fr", "Pas plus de 50 € par nuit, c'est ma limite."},
		{"fr", "Tant qu'on discute ici, reste en degrés Celsius."},
		{"fr", "Chaque fois que tu donnes un prix, ajoute la TVA."},
		{"fr", "Les émojis, très peu pour moi."},
		{"fr", "Je suis en fauteuil roulant, donc uniquement des hôtels accessibles."},
		{"fr", "J'aimerais que chacune de tes réponses commence par le résultat."},
		{"fr", "Interdiction de toucher à mon agenda."},
		{"fr", "Tiens-t'en au vouvoiement jusqu'à la fin."},
		{"es", "Regla básica: nada de anglicismos."},
		{"es", "Bajo ningún concepto contactes a mi casero."},
		{"es", "Más de 50 € por noche, ni hablar."},
		{"es", "Mientras hablemos, usa grados Celsius."},
		{"es", "Cada vez que des un precio, añade el IVA."},
		{"es", "Los emojis me sobran."},
		{"es", "Voy en silla de ruedas, así que solo hoteles accesibles."},
		{"es", "Me gustaría que todas tus respuestas empezaran por el resultado."},
		{"es", "Prohibido tocar mi calendario."},
		{"es", "Mantén el tono formal hasta el final."},
	}
}
