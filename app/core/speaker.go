package core

// ManySpeakers is the Session.Speakers of a session whose further user messages carry the
// names of their speakers in prompts.
const ManySpeakers = "*"

// AfterSpeaker returns the Session.Speakers after the message, and whether the message carries
// its speaker's name in prompts: each user message does from the second speaker's first one
// on. A message without author is nobody's.
func AfterSpeaker(speakers string, m Message) (after string, named bool) {
	key := SpeakerOf(m)
	switch {
	case m.Role != RoleUser:
		return speakers, false
	case speakers == ManySpeakers:
		return ManySpeakers, true
	case key == "" || key == speakers:
		return speakers, false
	case speakers == "":
		return key, false
	}
	return ManySpeakers, true
}

// SpeakerOf distinguishes the author of the message from others; empty = unknown. It does not
// reveal who it is.
func SpeakerOf(m Message) string {
	switch {
	case m.AuthorID != "":
		return UserSpeaker(m.AuthorID)
	case m.Author != "":
		return SecretHash("name " + m.Author)
	}
	return ""
}

// UserSpeaker returns the Session.Speakers of a session in which only the user spoke.
func UserSpeaker(user string) string { return SecretHash("user " + user) }
