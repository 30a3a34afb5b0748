package standing_test

import "testing"

// Requests for once, stories, questions and facts about others set nothing, although they are
// made of the words of instructions.
func TestRequestsForOnce(t *testing.T) {
	t.Parallel()
	const mistaken = 7 // by the tables of words
	if s := measureNegatives(t, requestsForOnce()); s.right < s.all-mistaken {
		t.Errorf("got %s, want all but %d", s, mistaken)
	}
}

func requestsForOnce() []string {
	return []string{
		"Write a short story in French about a cat that hates mice.",
		"Can you turn this list into a table with three columns?",
		"Give me the recipe in grams, I only have a scale here.",
		"Summarize the article in five bullet points.",
		"Write a Python script that renames all files in a folder.",
		"Make the second paragraph more formal.",
		"Draft an email to my landlord, max 100 words.",
		"Explain every step of the proof.",
		"I want a table of all the planets with their distances in miles.",
		"Please list every book she wrote before 1990.",
		"Is it true that vegans never eat honey?",
		"My boss wants all reports in English, what a pain.",
		"We spent 400 euros on the hotel and it was awful.",
		"The villain in that movie is called Scar.",
		"My son is allergic to homework, haha.",
		"Don't include the appendix in this version.",
		"Remove the emojis from the text below.",
		"What does \"due diligence\" mean?",
		"I need a hotel in Rome for two nights, under 150 euros.",
		"Add a comment to every function in this file.",
		"Name three things that nobody should eat raw.",
		"Can you be more specific?",
		"The report is due on Friday and I haven't even started.",
		"Translate this into Spanish without changing the names.",
		"Schreib mir ein kurzes Gedicht auf Deutsch über den Herbst.",
		"Mach aus dem Text eine Tabelle mit allen Preisen in Euro.",
		"Welche Wörter schreibt man immer groß?",
		"Nenn mir alle Planeten, die keinen Mond haben.",
		"Meine Schwester isst kein Fleisch, ihr Mann dagegen jeden Tag.",
		"Gib mir bitte nur die Überschriften dieses Artikels.",
		"Kürze den zweiten Absatz auf höchstens 50 Wörter.",
		"Wir hatten damals ein Budget von 3000 Euro und kamen nie damit aus.",
		"Der Kommissar in dem Buch heißt Brunetti.",
		"Ich brauche ein Rezept ohne Eier für heute Abend.",
		"Was heißt eigentlich \"per du\"?",
		"Erkläre mir jeden Schritt der Rechnung.",
		"Bis wann muss die Steuererklärung spätestens abgegeben werden?",
		"Kannst du den Brief etwas förmlicher schreiben?",
		"Im Restaurant duzt uns der Kellner immer.",
		"Lass uns heute mal über Politik reden.",
		"Écris-moi un petit poème en anglais sur la mer.",
		"Mets ce tableau au format CSV.",
		"Donne-moi la liste de tous les pays sans armée.",
		"Mon frère ne mange jamais de poisson, va savoir pourquoi.",
		"Explique chaque étape de ce calcul.",
		"Il me faut un hôtel à Lyon à moins de 100 euros pour samedi.",
		"Comment s'appelle le héros de ce roman ?",
		"Raccourcis ce paragraphe, 50 mots maximum.",
		"Le directeur veut que tous les rapports soient en anglais.",
		"On avait un budget de 500 euros et on a tout dépensé.",
		"Corrige seulement l'orthographe de ce texte.",
		"Est-ce qu'on tutoie son médecin en France ?",
		"Ne traduis pas les titres de cet article.",
		"Fais une phrase avec chaque mot de la liste.",
		"Escríbeme un poema corto en catalán sobre el mar.",
		"Pasa esta tabla a formato CSV, por favor.",
		"Dame una lista de todos los ríos de España.",
		"Mi hermana nunca come carne y está siempre cansada.",
		"Explica cada paso de este cálculo.",
		"Busco un hotel en Sevilla por menos de 90 euros la noche.",
		"¿Cómo se llama la protagonista de esa novela?",
		"Acorta el segundo párrafo a 50 palabras como máximo.",
		"Mi jefe quiere que todos los correos estén en inglés.",
		"Teníamos un presupuesto de 300 euros y no llegó.",
		"No incluyas la conclusión en este resumen.",
		"¿En Colombia se trata de usted a los padres?",
		"Haz una frase con cada palabra de la lista.",
		"El informe se entrega el viernes y aún no he empezado.",
	}
}
