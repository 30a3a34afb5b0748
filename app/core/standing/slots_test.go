package standing_test

import (
	"strings"
	"testing"
)

// What only the grammar finds replaces or withdraws what fills the same slot, and nothing else:
// an instruction that is lost is worse than one too many.
func TestSlots(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, earlier, message, want string }{
		{"names both values", "Give all prices in euros.", "we moved to prague so crowns from now on, not euros", "we moved to prague so crowns from now on, not euros"},
		{"same thing now", "Donne les températures en Celsius.", "mets les températures en fahrenheit maintenant", "mets les températures en fahrenheit maintenant"},
		{"scrapped unit", "Use metric units.", "scrap metric, imperial it is", "scrap metric, imperial it is"},
		{"back to a language", "Réponds toujours en anglais stp.", "Cambiemos del inglés al francés.", "Cambiemos del inglés al francés."},
		{"length", "Keep your replies under 50 words.", "50 words is too short, make it 120", "50 words is too short, make it 120"},
		{"budget of a thing", "Our budget for the kitchen is 8,000 dollars.", "The kitchen budget just went up to 11,500.", "The kitchen budget just went up to 11,500."},
		{"emojis are fine", "Never use emojis.", "emojis are fine again btw", ""},
		{"unit withdrawn", "Write all prices in yen.", "Cancel the yen instruction.", ""},
		{"named thing", "Leave nuts out of every recipe.", "The allergist retested me and I'm clear, so nuts don't have to be left out anymore.", "Leave nuts out of every recipe."},
		{"word limit withdrawn", "Limite-toi à 100 mots.", "La limite de mots est levée.", ""},

		{"language of something else", "Comment the code in German.", "From now on answer in English, not in German.", "Comment the code in German.|From now on answer in English, not in German."},
		{"budget of another thing", "At most 50 euros per gift.", "The hotel may cost 80 euros per night, not 50.", "At most 50 euros per gift."},
		{"both values", "Give prices in euros.", "never show prices in euros and dollars side by side pls", "Give prices in euros.|never show prices in euros and dollars side by side pls"},
		{"only sometimes", "Give prices in dollars.", "Give prices in euros if I'm in Paris.", "Give prices in dollars.|Give prices in euros if I'm in Paris."},
		{"about the user", "I'm learning Spanish, so always answer in Spanish.", "My French is better than my Spanish now.", "I'm learning Spanish, so always answer in Spanish."},
		{"allergy", "I'm allergic to peanuts.", "Same here, only without too much bread.", "I'm allergic to peanuts."},
		{"order", "Always talk like a pirate.", "My son has had enough of pirates.", "Always talk like a pirate."},
		{"lasting lesson", "Ask me Spanish vocabulary every day.", "Actually, let's speak French instead of Spanish.", "Ask me Spanish vocabulary every day.|Actually, let's speak French instead of Spanish."},
		{"money of others", "Our limit is 900 euros.", "You don't need to pay for it anymore.", "Our limit is 900 euros."},
		{"over there", "Our limit is 900 euros.", "We don't need to go over there anymore.", "Our limit is 900 euros."},
		{"long words", "Keep your replies under 50 words.", "no more long words pls", "Keep your replies under 50 words.|no more long words pls"},
		{"limit of something else", "Keep every reply to three sentences.", "La limite de mots est levée.", "Keep every reply to three sentences."},
		{"language of comments", "Please answer in French from now on.", "From this point the comments belong in English and not in French.", "Please answer in French from now on.|From this point the comments belong in English and not in French."},
		{"money for something", "My budget is 400 €.", "Tenemos 6.000 euros para la boda y no vamos a pasar de ahí.", "My budget is 400 €.|Tenemos 6.000 euros para la boda y no vamos a pasar de ahí."},
		{"two of them", "Give prices in yen.|Give fares in yen.", "Cancel the yen instruction.", "Give prices in yen.|Give fares in yen."},
		{"two of a word", "Leave nuts out of every recipe.|Always check the menu for nuts and sesame first.", "I'm clear, so nuts don't have to be left out anymore.", "Leave nuts out of every recipe.|Always check the menu for nuts and sesame first."},
		{"call by telephone", "Never call me before 9 am.", "Never call me after 8 pm.", "Never call me before 9 am.|Never call me after 8 pm."},
		{"subtitles", "Always answer in French.", "Use English subtitles in the video instead.", "Always answer in French.|Use English subtitles in the video instead."},
		{"which budget", "Our budget for the hotel is 800 euros.|Our budget for the flights is 500 euros.", "Let's make it 600 euros.", "Our budget for the hotel is 800 euros.|Our budget for the flights is 500 euros."},
		{"one of several", "Nenne immer die Quellen.", "Die zweite Quelle brauche ich nicht mehr.", "Nenne immer die Quellen."},
		{"nothing there", "Never use tabs.", "scrap metric, imperial it is", "Never use tabs."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := sayAll(strings.Split(tt.earlier, "|"))
			l.say(tt.message)
			if got := strings.ReplaceAll(l.texts(), "\n", "|"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
