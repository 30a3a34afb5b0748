package story

import (
	"fmt"
	"strings"
)

// chat is a talk of many weeks with little else than words: what is decided at its
// beginning is asked for at its end.
func chat() []byte {
	t := tell(11)
	t.system("You help Marta Okonjo run a small bicycle workshop. Be brief and concrete. Keep to what was decided before unless she changes it.")
	t.user("Hi! I run a bicycle workshop called ⟦name|Spoke & Lantern|What is the name of our workshop again?⟧, three people, and our lease at Weaver Street ends on ⟦fact|30 September|When does the old lease run out?⟧. We have to move without closing for more than four days. Help me to keep it all in my head?")
	t.assistant("Gladly. I will keep four lists for you: dates, money, people, and open questions. So far: the lease at Weaver Street ends on 30 September, three people, at most four days closed. Tell me what the new place is, or whether you are still looking, and what the move may cost.")
	t.user("There is a place: ⟦name|Halloran Yard 7|Which place did we choose for the shop?⟧, ground floor, 140 m². The owner is ⟦name|Ottilie Brandt|Who is the owner of our new rooms?⟧. All in all we may spend ⟦fact|48,500 euros|How much may we spend on everything?⟧, and not one more, the bank was clear about that.")
	t.assistant("Noted: Halloran Yard 7, 140 m², owner Ottilie Brandt, and a ceiling of 48,500 euros for everything. A ceiling that hard deserves a reserve: I would plan with 44,000 and keep the rest untouched until the last week. Shall I do that?")
	t.user("Yes, plan with 44,000. And write down that I do not want to work with ⟦name|Fenwick Transport|Which carrier is out, because of the broken truing stand?⟧ again, they dropped a truing stand last time.")
	t.assistant("Done: plan with 44,000, reserve 4,500, and no Fenwick Transport. Next I would settle the lease of the yard, as everything else hangs on its first day.")
	for _, chapter := range chapters() {
		for _, pair := range chapter {
			t.user(pair[0])
			t.assistant(pair[1])
			t.interlude()
		}
	}
	for week := range 14 {
		t.week(week + 1)
		t.interlude()
	}
	t.user("Last thing, and I mean it. Before I hand the keys back: what was the owner's name again, what may the whole move cost, and whom did I not want to work with?")
	t.assistant("The owner of the yard is the one you signed with at the beginning; the ceiling is the bank's; and the carrier is the one that dropped the truing stand. If you want the exact words, I can look them up in what you wrote to me in the first days.")
	return t.out.Bytes()
}

// chapters are the subjects that come once.
func chapters() [][][2]string {
	return [][][2]string{
		{
			{"The lease came. Twelve pages. She wants three months' deposit, and a clause says that we may not use ⟦fact|compressed air after 20:00|What does the lease forbid in the evening?⟧. Is that normal?",
				"Three months is the usual upper end, so it is not outrageous, but ask to pay it in three parts. The clause on compressed air is a house rule more than a lease term; it is normal in a yard with flats above. For you it means: the compressor and the blast cabinet run before eight in the evening. Accept it, but ask for an exception on two evenings a month before the spring season."},
			{"She agreed to two parts and to the exception in March and April. Signed! The contract number is ⟦fact|HY-2231-B|What number does the signed contract have?⟧ and we get the keys on ⟦fact|2 September|On which day do we get the keys of the yard?⟧.",
				"Congratulations. Contract HY-2231-B, keys on 2 September, old lease until the end of the month: that is four weeks in which you have both. I would use the first for floor and power, the second for shelves and stands, the third for the move, and leave the fourth for handing Weaver Street back."},
			{"Good. Who do I need for the floor?",
				"Someone for an oil-resistant coating, which has to cure for five days before anything heavy stands on it. So the floor comes first of all, on the first day you have the keys. Ask for the slip class, too: R11 is what a workshop should have."},
		},
		{
			{"Electricity: the yard has one socket circuit. We have the compressor, the parts washer, four e-bike chargers and the oven for powder tests. What do I order?",
				"Not one circuit, in any case. Let the electrician put the compressor and the oven on their own three-phase lines, the chargers on a separate circuit with a fire-rated shelf, and the sockets on a third. Write the charger circuit into the order by name: the insurer will ask for it."},
			{"The electrician is ⟦name|Teodor Salas|What was the electrician's name?⟧, he did my sister's bakery. He wants to start on the 4th and says the meter cabinet needs the approval ⟦fact|NZ-58-114|Which approval does the meter cabinet need?⟧ of the grid operator.",
				"Then the approval is on the critical path: without NZ-58-114 nobody closes the cabinet. Ask him today whether he applies for it, or you. I note Teodor Salas for the 4th."},
			{"He applies. He also said to keep the chargers one meter from the wall because of the pipes.",
				"Fine, and sensible. I put it among the measures for the floor plan: chargers at least one meter from the north wall."},
		},
		{
			{"Insurance wants a list of everything worth more than 500. Can you make a form for that?",
				"Here is one to copy:\n\n| item | serial number | bought | price | where it stands |\n|---|---|---|---|---|\n| truing stand | | | | |\n| frame jig | | | | |\n| parts washer | | | | |\n| compressor | | | | |\n\nTake a photo of each type plate while you are at it; a list with photos is settled in days, one without in weeks."},
			{"Done, 31 things. Together ⟦fact|62,340 euros|What is everything on the insurance list worth?⟧. The policy number is ⟦fact|POL-90-7716|What is our policy number at the insurance?⟧, our person there is ⟦name|Ines Abernathy|Who is our contact at the insurance?⟧.",
				"Noted: 31 things, 62,340 euros, policy POL-90-7716, Ines Abernathy. Ask her for one line in writing: that the tools are insured in both places during September, and on the way between. That line is what most people forget."},
			{"She wrote it. On the way it is insured only if two people lift anything over 40 kilos.",
				"Good that you asked. So: a two-person rule for everything over 40 kilos. The compressor, the frame jig and the parts washer are over that. I will remind you when we plan the day of the move."},
		},
		{
			{"Who moves us? I have three offers, please compare: Norling 3,900 with packing, Two Hands 2,450 without, Brightvan 3,100 with half.",
				"Per hour of your own time Norling is the cheapest: packing took you two and a half days last time, and three people cost more than 1,450 for that. But the fragile half is what matters, and Brightvan packs just that. My order: Brightvan, if they commit to the two-person rule; else Norling. Two Hands only if somebody packs for nothing."},
			{"Brightvan agrees to the rule. I take them. The booking is ⟦fact|BV-20931|Under which booking do the movers come?⟧ for ⟦fact|17 September|When do the movers come?⟧, seven in the morning.",
				"Booked: Brightvan, BV-20931, 17 September at seven. Closed days are then 16 to 19 September if nothing goes wrong, which is exactly your four. Tell regular customers now, and stop taking repairs that need parts from the 9th on."},
		},
		{
			{"How do I tell customers? I want it to sound like us, not like a bank.",
				"Something like this:\n\n> We are rolling away! From 20 September you find us at Halloran Yard 7, five minutes from the old door, with more light and a bench to sit on. From the 16th to the 19th we are carrying things. If your bike is with us then, it moves first class.\n\nPut the date in the first line for those who read nothing else."},
			{"Lovely. Put in that they can ⟦fact|call Dov on the workshop phone|Whom do customers reach during the days when we are closed?⟧ while we are closed.",
				"With Dov in it the last line becomes: \"Something urgent? Dov has the workshop phone with him all four days.\" I would give him a list of the ten bikes that are due that week, so that he can answer at once."},
			{"And the sign above the door, please remind me that it must be ⟦fact|no wider than 220 cm|How large may the sign be?⟧, the yard is listed.",
				"I keep it: sign at most 220 cm wide, because the yard is a listed building. Then also ask whether it may be lit; in listed yards the answer is often \"from inside only\"."},
		},
		{
			{"Different thing. ⟦fact|Priyanka wants to work four days|Who works less from October on?⟧ from October. I want to keep her. What does that do to the plan?",
				"In October it costs you one bench day a week, about eight repairs. You could win half of it back with fixed drop-off hours in the morning, which also makes the days calmer. For the move itself nothing changes. I would say yes quickly; somebody who is asked to wait for an answer starts to look around."},
			{"I said yes. She is happy. In return she does the stock count, she is the only one who understands the ⟦name|blue binder|What is the stock written down in?⟧.",
				"A good trade. Let her count before the move and not after: what is counted in boxes is counted once. And let her write a page on how the blue binder works, just in case."},
		},
		{
			{"Dov thinks we should sell the old frame jig instead of moving it. It weighs 180 kilos.",
				"Arguments for selling: the weight, the two-person rule, and 1.5 m² of floor. Against: a used one of that kind costs 2,800 when you need it again. How often did you use it in the last twelve months?"},
			{"Four times. All for ⟦name|Mr. Castellanos|Which customer has the tandems?⟧ and his tandems.",
				"Four times in a year does not pay for 1.5 m². Sell it, and ask Mr. Castellanos first: people with tandems know people with tandems."},
			{"You will laugh. He bought it himself, for ⟦fact|1,650 euros|For how much did we sell the frame jig?⟧, and picks it up on the 12th.",
				"That is the best sort of sale. I book 1,650 euros as income, and the jig is off the list of heavy things. The plan is at 42,350 now, with the reserve untouched."},
		},
	}
}

// interlude is one of the small questions that come between.
func (t *teller) interlude() {
	for range t.between(3, 5) {
		if t.IntN(2) == 0 {
			t.quote()
		} else {
			t.repair()
		}
	}
}

// quote compares two offers.
func (t *teller) quote() {
	items := []string{"a workbench of 2.4 m with a beech top", "cantilever shelves for frames", "a parts washer with a lid", "LED panels, 4000 K, eight of them",
		"rubber mats for the stands", "a lockable cabinet for batteries", "wall hooks for 40 bicycles", "a steel door with a cat flap", "a water heater of 30 liters",
		"a till with a receipt printer", "a bench for customers, for outside", "two extractors for brake dust"}
	sellers := []string{"Kettering Tools", "Arbo Supply", "Mill & Daughters", "Ostrava Steel", "Lumen Direct", "the Wednesday market", "Harrow Fittings", "Baltic Racking"}
	s := some(t, sellers, 2)
	low := t.between(18, 190) * 10
	high := low + t.between(3, 40)*10
	item := one(t, items)
	days, guarantee := t.between(3, 24), t.between(2, 5)
	cheap, dear := s[0], s[1]
	t.user(fill(one(t, []string{
		"Quick one: {item}. {dear} wants {high}, {cheap} wants {low} but needs {days} days. Which?",
		"We also need {item}. Two offers, {cheap} {low} euros in {days} days, {dear} {high} and it is in stock. What would you do?",
		"{item}: {low} at {cheap}, delivered in {days} days, or {high} at {dear} with {guarantee} years of guarantee. Hm.",
	}), map[string]string{"item": item, "cheap": cheap, "dear": dear, "low": number(low), "high": number(high), "days": fmt.Sprint(days), "guarantee": fmt.Sprint(guarantee)}))
	verdict := fmt.Sprintf("Take %s: %s euros less, and %d days are no problem before the shelves are up.", cheap, number(high-low), days)
	if days > 14 {
		verdict = fmt.Sprintf("Take %s. %d days would put it after the day of the move, and %s euros is less than a second delivery.", dear, days, number(high-low))
	}
	t.assistant(verdict + " " + one(t, []string{
		"Ask for the delivery to the yard and not to the street: the gate is narrow.",
		"I book it under furniture; that line is still under its share.",
		"Before you order, measure once more. The north wall loses ten centimeters to the pipes.",
		"If they take it back when it does not fit, write that on the order.",
		"Pay it with the business card, so that it is in the quarterly list by itself.",
		"It is a small sum against the plan; what costs more is thinking about it for another week.",
	}))
}

// repair is a question from the bench.
func (t *teller) repair() {
	bikes := []string{"a Peugeot from 1983", "a cargo bike with a mid-drive", "a Dutch roadster", "a child's bike with 20 inch wheels", "a randonneur with a front rack", "a folding bike", "a gravel bike that was ridden through salt"}
	faults := [][2]string{
		{"the bottom bracket creaks under load, only on the left", "Take the pedals off first and ride it with the cranks alone; half of all bottom brackets that creak are pedals. Then grease the shell and torque it again, and only then order a new one."},
		{"the rim brake howls although the pads are new", "Toe them in by the thickness of a business card and break the glaze on the rim with 400 paper. If it still howls, look for play in the headset."},
		{"the battery shows two bars and dies on the hill", "Measure it under load, not at rest. A pack that falls by more than 15 percent on a hill has a weak group; the dealer will swap it within the guarantee, and the log of the controller proves it."},
		{"the derailleur skips in the third gear", "Look at the hanger before you touch the indexing. Third gear alone usually means a bent tooth or a stiff link; mark the link and count the teeth."},
		{"the owner wants wider tires than the frame was made for", "Six millimeters of air on each side is my limit, four with a frame that does not flex. Show it with a spoke between tire and stay; people believe a spoke."},
		{"the hub gear loses oil since we turned it upside down", "That one must not lie upside down for longer than an hour. Fill 25 ml, leave it upright overnight, and put a note on the stand so that nobody does it again."},
	}
	customer := one(t, []string{"Mrs. Adeyemi", "the teacher from the corner", "a student", "the baker", "our postman", "Mr. Lindqvist", "the couple with the twins"})
	f := one(t, faults)
	t.user(fmt.Sprintf(one(t, []string{
		"From the bench: %s, %s. It belongs to %s. Where would you look first?",
		"Sorry, no moving today. There is %s here and %s. %s needs it on Friday.",
		"%s, and %s. %s is waiting outside. Ideas?",
	}), one(t, bikes), f[0], customer))
	t.assistant(f[1] + " " + one(t, []string{
		"Half an hour, I would say, so quote it as one unit.",
		"If it takes longer than an hour, call before you go on.",
		"Write what you found on the card; the same bike comes back in spring.",
		"And take a photo before, for the folder.",
		fmt.Sprintf("I would ask for %d euros and say so before you start.", t.between(3, 12)*5),
	}))
}

// week is a look at where everything stands.
func (t *teller) week(n int) {
	spent := 3_200 + n*t.between(2_500, 2_850)
	open := some(t, []string{
		"the lamp over the till", "the key for the meter cabinet", "the second half of the deposit", "a place for the dog", "the waste oil contract", "the sign",
		"the internet line, they promised the 11th", "new business cards", "the water meter reading", "who feeds the cat of the yard", "the bell at the gate", "first-aid box",
	}, 3)
	t.user(fmt.Sprintf("Week %d. We have spent %s so far. Still open: %s. %s", n, number(spent), strings.Join(open, "; "), one(t, []string{
		"I am tired. What is the one thing I should do tomorrow?", "Am I forgetting something?", "Are we still inside the plan?", "What can wait until we are there?", "Please sort that for me.",
	})))
	rest := "You are inside the plan"
	if spent > 44_000 {
		rest = "You are into the reserve now, though not over the ceiling"
	}
	t.assistant(fmt.Sprintf("%s: %s of 44,000, %s left. Of what is open I would do %s first, because others wait for it. %s can wait until you are in the yard. %s",
		rest, number(spent), number(48_500-spent), open[0], strings.ToUpper(open[1][:1])+open[1][1:], one(t, []string{
			"And sleep; nothing on this list gets worse by tomorrow morning.",
			"Ask Dov to take one of the three, he offered it last week.",
			"The two-person rule holds on small days, too.",
			"Take ten minutes on Friday to cross things off; it helps more than it should.",
			"Tell Priyanka where the list hangs, so that it is not only in your head.",
		})))
}

// number writes a number with a comma at the thousands.
func number(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
