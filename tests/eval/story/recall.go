package story

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Recall makes the sample of conversations with questions: two pairs of friends write to each
// other for months, and each question asks for what one of them once said.
func Recall() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode([]letters{write(21, "harbor", "Ida", "Tom", atTheHarbor()), write(22, "garden", "Noor", "Paul", inTheGarden())}); err != nil {
		panic("story: " + err.Error()) // texts only
	}
	return b.Bytes()
}

// letters are a conversation with questions.
type letters struct {
	ID        string     `json:"id"`
	Speakers  [2]string  `json:"speakers"`
	Messages  []letter   `json:"messages"`
	Questions []question `json:"questions"`
}

type letter struct {
	ID      string `json:"id"`
	Speaker string `json:"speaker"`
	Text    string `json:"text"`
}

type question struct {
	Question string   `json:"question"`
	Answer   string   `json:"answer"`
	Evidence []string `json:"evidence"`
}

// news is something that one of two friends says, the other's answer, and what is asked about
// it. The question of a mark (⟦answer|question⟧) is one that its own message answers.
type news struct{ said, answer string }

// write writes letters: the news in their order, and small talk between.
func write(seed uint64, id, first, second string, list []news) letters {
	t := tell(seed)
	out := letters{ID: id, Speakers: [2]string{first, second}}
	say := func(speaker, text string) {
		m := letter{ID: fmt.Sprintf("m%d", len(out.Messages)+1), Speaker: speaker}
		for {
			before, rest, marked := strings.Cut(text, "⟦")
			m.Text += before
			if !marked {
				break
			}
			inside, after, _ := strings.Cut(rest, "⟧")
			answer, ask, _ := strings.Cut(inside, "|")
			m.Text += answer
			out.Questions = append(out.Questions, question{Question: ask, Answer: answer, Evidence: []string{m.ID}})
			text = after
		}
		out.Messages = append(out.Messages, m)
	}
	for i, n := range list {
		tells, listens := first, second
		if i%2 == 1 {
			tells, listens = second, first
		}
		say(tells, n.said)
		say(listens, n.answer)
		for range t.between(2, 4) {
			talk := one(t, smallTalk())
			say(tells, fill(talk[0], t.trifles()))
			say(listens, fill(talk[1], t.trifles()))
		}
	}
	return out
}

// trifles are what small talk is about.
func (t *teller) trifles() map[string]string {
	return map[string]string{
		"day":   one(t, []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}),
		"thing": one(t, []string{"the kettle", "my bicycle", "the washing machine", "the back door", "the old radio", "the gutter", "my left shoe", "the printer"}),
		"food":  one(t, []string{"lentil soup", "plum cake", "pancakes", "a pot of chili", "dumplings", "roast carrots", "too much bread"}),
		"hours": fmt.Sprint(t.between(2, 9)),
	}
}

// smallTalk says nothing that anybody asks for later.
func smallTalk() [][2]string {
	return [][2]string{
		{"It rained again all {day}. I stayed in and made {food}.", "Same here, only without {food}. The street was a river by noon."},
		{"Did I tell you that {thing} is broken again? It took me {hours} hours to find out why.", "You did not, but I am not surprised. Take it to the shop on {day} before you open it up."},
		{"I slept {hours} hours and feel like a different person.", "Lucky you. The neighbors moved furniture until late and I counted sheep."},
		{"Work was long today. Meetings until {day}, it seems.", "Hang in there! Make {food} and do not look at the mail tonight."},
		{"What are you up to on {day}? I may be around.", "Nothing yet. Come by, there will be {food}."},
		{"I finally fixed {thing}, with tape and hope.", "Tape and hope is how everything here works. Well done!"},
		{"My sister called for {hours} hours. She says hello.", "Hello back! How does she always find the time?"},
		{"I read half of that book you gave me. Slow start, good middle.", "It gets better from there. Tell me when you are through."},
	}
}

// atTheHarbor is what Ida and Tom tell each other.
func atTheHarbor() []news {
	return []news{
		{"I signed up for the sailing course at last! ⟦Mr. Haldane|Who teaches Ida to sail?⟧ runs it, every Saturday at the old pier.", "Wonderful! You talked about that since school. Do you need boots?"},
		{"My mother's operation went well. She is at ⟦Saint Brigid's|In which hospital was Tom's mother?⟧ until the end of the week.", "What a relief. Give her my love, I will send flowers."},
		{"We called the dinghy ⟦Marzipan|What is the name of Ida's boat?⟧ because of the color. It stuck.", "A boat that sounds like dessert. I approve."},
		{"I sold the violin. It went to a student for ⟦1,150 pounds|How much did Tom get for his instrument?⟧, and she cried when she played it.", "Oh Tom. That must have hurt, and it was still right."},
		{"News from the office: I am moving to the ⟦Lisbon|Where will Ida work from spring on?⟧ branch in spring, for a year.", "A year! I am happy and sad at once. We will visit, all of us."},
		{"The doctor says I must not eat ⟦walnuts|What is Tom allergic to?⟧ any more. That explains the rash.", "Then no more of my brownies for you. I will find another recipe."},
		{"My niece was born last night! They call her ⟦Philippa|What is the name of Ida's niece?⟧, 3.4 kilos, very loud.", "Congratulations, aunt! Loud is good, loud is healthy."},
		{"I ran the half marathon in ⟦1:52|What was Tom's time in the race?⟧, with a cramp in the last mile.", "With a cramp! Next time under 1:50, I bet you a dinner."},
		{"The landlord wants to repaint the stairs in ⟦dark green|Which color did the landlord choose?⟧. We all voted against it, in vain.", "It will look like the inside of a bottle. My condolences."},
		{"I started to learn ⟦Estonian|Which language does Tom study?⟧ because of the choir, fourteen cases and no future tense.", "No future tense sounds restful. Say something!"},
		{"The regatta is over: we came in ⟦fourth|Which place did Ida's crew take?⟧ of eleven, and nobody fell in.", "Fourth is splendid for a dessert. Is there a photo?"},
		{"I adopted a greyhound from the shelter. He is called ⟦Bishop|What is Tom's dog called?⟧ and is afraid of umbrellas.", "Afraid of umbrellas, in this town! I must meet him."},
		{"I lost the keys of the boat house. The spare ones are with ⟦old Mrs. Quill|Who keeps the second set of keys for Ida?⟧, thank heavens.", "She keeps everything for everyone. Bring her some of the jam."},
		{"The choir sings in ⟦the chapel on Garrick Hill|Where is the concert of Tom's choir?⟧ this Advent. Will you come?", "Front row, with a scarf. Tell me the date."},
		{"My flight is on ⟦the 9th of March|When does Ida fly?⟧, early. Can you take me to the airport?", "Of course. I will set three alarms and bring coffee."},
		{"I am writing a story about ⟦a lighthouse keeper who cannot swim|What is Tom's story about?⟧. Do not laugh.", "I do not laugh, I want to read it. How does it end?"},
		{"They gave me the flat on ⟦Rua das Flores|In which street will Ida live?⟧, third floor, no lift, a view of everything.", "No lift is how one gets strong legs. Send pictures of everything."},
		{"My story won the ⟦Wexcombe prize|Which award did Tom get?⟧! There is a certificate and a cheese.", "The lighthouse keeper! I knew it. Who gets the cheese?"},
	}
}

// inTheGarden is what Noor and Paul tell each other.
func inTheGarden() []news {
	return []news{
		{"We got the allotment! Number ⟦forty-seven|Which number has Noor's allotment?⟧, next to the railway, with a plum tree.", "After four years on the list! What will you plant first?"},
		{"I quit the bank. From May on I bake for ⟦Crumb & Daughter|Where does Paul work now?⟧, nights, six days.", "Paul! That is the bravest thing I heard this year."},
		{"The soil test is back: too much ⟦zinc|What did they find in Noor's soil?⟧, so nothing with roots for a while.", "Then beans and sunflowers first, they do not mind much."},
		{"My oven at home died, and the new one costs ⟦890 euros|What is the price of Paul's new stove?⟧. I eat cold dinners.", "Use ours until then. You have the key anyway."},
		{"My cousin ⟦Samira|Who of Noor's family comes to live with her?⟧ moves in with me in autumn, she starts her studies here.", "A full house! Does she know about the plum tree?"},
		{"I burned my hand on a tray. ⟦Nine days|For how long may Paul not work?⟧ off, says the doctor, and no water on it.", "Ouch. I come over and wash your dishes, no discussion."},
		{"We found a ⟦Roman coin|What turned up while Noor was digging?⟧ under the compost! The museum wants to see it.", "Only you would dig for beans and find an emperor."},
		{"The bread fair gave my rye loaf ⟦a silver medal|What did Paul's loaf win?⟧. The gold one went to a woman of eighty.", "Silver at the first attempt! She has sixty years on you."},
		{"I enrolled in the evening class for ⟦bookbinding|Which course does Noor take?⟧. My fingers smell of glue.", "Bind me my recipes, I will pay in rolls."},
		{"My brother gets married in ⟦Trieste|Where is the wedding of Paul's brother?⟧, and I make the cake, four tiers.", "Four tiers by train? You need a second pair of hands. Mine are free."},
		{"The hedgehog is back under the shed. I named him ⟦Professor|What does Noor call the hedgehog?⟧, for the glasses.", "Does he hold office hours? Leave him some cat food."},
		{"I failed the driving test again, because of ⟦a roundabout|Why did Paul not pass?⟧. Third time.", "Fourth time lucky. I practice with you on Sunday, at the empty market."},
		{"The neighbors in plot 46 keep ⟦quails|Which animals live next to Noor's plot?⟧ now. I get eggs for plums.", "A fair trade. Tiny omelets from now on."},
		{"I rented the empty shop on ⟦Tanner's Lane|Where will Paul open his bakery?⟧. My own bakery, in spring. I am scared.", "Your own! I paint the sign, and I will not discuss that either."},
		{"The council wants to close the allotments by ⟦2029|When might Noor lose her garden?⟧ for a parking garage.", "Over my dead sourdough. Is there a petition?"},
		{"The sign painter asks for the name. I chose ⟦Second Rise|What is the name of Paul's shop?⟧, because of the dough and of me.", "It is perfect. I cried a little into the compost."},
		{"We collected ⟦3,212 signatures|How many people signed against the parking garage?⟧, and the council listens on Thursday.", "I bring rolls for the whole council. Nobody votes against warm rolls."},
		{"My starter is from my grandmother, from ⟦1961|How old is Paul's sourdough, from which year?⟧. It goes into the safe of the new shop.", "Older than both of us, and in better shape."},
	}
}
