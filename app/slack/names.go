package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	slackapi "github.com/slack-go/slack"

	"bobbin/app/core"
)

// How long names are remembered, how many, and how long they may be.
const (
	nameLife = time.Hour
	maxNames = 10_000
	maxName  = 80 // characters
)

// person is who writes in Slack, as far as Slack says; of a channel the name.
type person struct {
	ID       string // of the user in Bobbin: findPerson knows it
	Name     string
	Timezone string
	Email    string // only a confirmed one, of a full member of the workspace
	Team     string
	Guest    bool // no full member of the workspace, or of its organization
}

// knownName is a person or a channel that is remembered, by team and id.
type knownName struct {
	person
	until time.Time
}

// findUser returns who a user is; the id as the name of one that Slack does not show.
func (s *workspace) findUser(ctx context.Context, id string) (person, error) {
	return s.Clients.lookUpName(s.team, id, func() (person, error) {
		u, err := s.api.GetUserInfoContext(ctx, id)
		if err != nil {
			return person{}, fmt.Errorf("users.info: %w", err)
		}
		p := person{Name: u.Name, Timezone: u.TZ, Team: u.TeamID}
		for _, name := range []string{u.RealName, u.Profile.RealName, u.Profile.DisplayName} {
			if cleanName(name) != "" {
				p.Name = name
			}
		}
		outside := u.TeamID != s.team && (s.api.me.EnterpriseID == "" || u.Enterprise.EnterpriseID != s.api.me.EnterpriseID)
		p.Guest = outside || u.IsStranger || u.IsRestricted || u.IsUltraRestricted
		if u.IsEmailConfirmed && !u.IsBot && !u.IsStranger && !u.IsRestricted && !u.IsUltraRestricted {
			p.Email = strings.ToLower(u.Profile.Email)
		}
		return p, nil
	})
}

// findChannel returns the name of a channel.
func (c *Clients) findChannel(ctx context.Context, api *client, team, id string) (person, error) {
	return c.lookUpName(team, id, func() (person, error) {
		c, err := api.GetConversationInfoContext(ctx, &slackapi.GetConversationInfoInput{ChannelID: id})
		if err != nil {
			return person{}, fmt.Errorf("conversations.info: %w", err)
		}
		return person{Name: c.Name}, nil
	})
}

// lookUpName returns what is known of the id in the team, or asks. What Slack refuses to say is its id.
func (c *Clients) lookUpName(team, id string, ask func() (person, error)) (person, error) {
	key := team + "/" + id
	if found, ok := c.names.Get(key); ok && time.Now().Before(found.until) {
		return found.person, nil
	}
	p, err := ask()
	var refused slackapi.SlackErrorResponse
	if err != nil && !errors.As(err, &refused) {
		return person{}, err
	}
	p.Name = cmp.Or(cleanName(p.Name), id)
	c.names.Set(key, knownName{person: p, until: time.Now().Add(nameLife)})
	return p, nil
}

// ForgetUser removes what is remembered of a user: the names of the person in Slack, by the user's
// id in Bobbin or the e-mail address that is the id.
func (s *Service) ForgetUser(user string) {
	s.Clients.names.DeleteFunc(func(key string, known knownName) bool {
		_, id, _ := strings.Cut(key, "/")
		return known.Email != "" && known.Email == user || strings.HasPrefix(user, "slack:") && strings.HasSuffix(user, "/"+id)
	})
}

// resolved are the names of one text.
type resolved map[string]string

func (r resolved) of(id string) string { return cmp.Or(r[id], id) }

// maxMentions is how many names of one text are looked up.
const maxMentions = 50

// findPerson returns who a Slack user is in Bobbin. Only members of the workspace are linked by
// e-mail.
func (s *workspace) findPerson(ctx context.Context, team, id string) (person, error) {
	p, err := s.findUser(ctx, id)
	if err != nil {
		return person{}, err
	}
	p.ID, p.Guest = userID(team, id), p.Guest || p.Team == "" // Slack may not say who it is
	if _, err := time.LoadLocation(p.Timezone); err != nil {
		p.Timezone = ""
	}
	if s.Settings.LinkByEmail && p.Email != "" && team == s.team && p.Team == s.team {
		p.ID = p.Email
	}
	return p, nil
}

// cleanName returns a name in one line that can stand anywhere: without control characters.
func cleanName(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	name = strings.Join(strings.Fields(name), " ")
	if r := []rune(name); len(r) > maxName {
		name = string(r[:maxName])
	}
	return core.CleanText(name)
}
