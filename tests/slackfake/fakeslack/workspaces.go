package fakeslack

import (
	"slices"
	"strings"
)

// Workspace is a team with its channels, users and messages.
type Workspace struct {
	ID, Name string

	server     *Server
	users      []*User
	channels   []*Channel
	files      []*File
	ephemerals []Ephemeral
	bot        *User // the app's; nil where it was never installed
	installed  bool
}

// User is a person, or a bot, of a workspace. Its methods act as this user.
type User struct {
	ID, Name, RealName, Email string
	BotID, AppID              string // of bots
	Restricted                bool   // a guest; set it before use

	ws    *Workspace
	token string
}

// Channel is a conversation.
type Channel struct {
	ID, Name string
	Kind     string // channel, group, mpim or im
	User     string // the person in an im

	messages []*Message // by ts
}

// AddWorkspace adds a workspace without users and channels, in which the app is not
// installed.
func (s *Server) AddWorkspace(name string) *Workspace {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &Workspace{ID: s.newID("T"), Name: name, server: s}
	s.workspaces = append(s.workspaces, w)
	s.notifyWaiters()
	return w
}

// AddUser adds a person. The display name is the name.
func (w *Workspace) AddUser(name, email string) *User {
	return w.addUser(User{Name: strings.ToLower(name), RealName: name, Email: email})
}

// AddBot adds the bot user of another app.
func (w *Workspace) AddBot(name string) *User {
	return w.addUser(User{Name: name, RealName: name, BotID: "B" + strings.ToUpper(name), AppID: "A-" + name})
}

func (w *Workspace) addUser(u User) *User {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return w.insertUser(u)
}

func (w *Workspace) insertUser(u User) *User {
	u.ID, u.ws = w.server.newID("U"), w
	w.users = append(w.users, &u)
	kind := userToken
	if u.BotID != "" {
		kind = botToken
	}
	u.token = w.server.addToken(kind, &u).value
	w.server.notifyWaiters()
	return &u
}

// AddChannel adds a public channel. With an empty id it gets a new one; the same id may be
// in two workspaces.
func (w *Workspace) AddChannel(id, name string) *Channel {
	c := &Channel{ID: id, Name: name, Kind: "channel"}
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	if c.ID == "" {
		c.ID = w.server.newID("C")
	}
	w.channels = append(w.channels, c)
	w.server.notifyWaiters()
	return c
}

// DM returns the direct messages between the user and the app.
func (u *User) DM() *Channel {
	u.ws.server.mu.Lock()
	defer u.ws.server.mu.Unlock()
	return u.ws.openDM(u)
}

func (w *Workspace) openDM(u *User) *Channel {
	for _, c := range w.channels {
		if c.Kind == "im" && c.User == u.ID {
			return c
		}
	}
	c := &Channel{ID: w.server.newID("D"), Name: "dm-" + u.Name, Kind: "im", User: u.ID}
	w.channels = append(w.channels, c)
	w.server.notifyWaiters()
	return c
}

// Token returns the token with which a client of the Web API acts as this user or bot.
func (u *User) Token() string { return u.token }

// Mention returns the markup that mentions the user.
func (u *User) Mention() string { return "<@" + u.ID + ">" }

// Bot returns the bot user of the app, nil where it was never installed.
func (w *Workspace) Bot() *User {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return w.bot
}

func (w *Workspace) findUser(id string) *User {
	return findFirst(w.users, func(u *User) bool { return u.ID == id })
}

func (w *Workspace) findChannel(id string) *Channel {
	return findFirst(w.channels, func(c *Channel) bool { return c.ID == id || c.Name != "" && "#"+c.Name == id })
}

// findFirst returns the first element that matches, or nil.
func findFirst[T any](list []*T, matches func(*T) bool) *T {
	if i := slices.IndexFunc(list, matches); i >= 0 {
		return list[i]
	}
	return nil
}

// userProfile is a user as users.info has it.
func (u *User) userProfile() reply {
	p := reply{"display_name": u.RealName, "real_name": u.RealName, "team": u.ws.ID}
	if u.Email != "" {
		p["email"] = u.Email
	}
	if u.AppID != "" {
		p["api_app_id"], p["bot_id"] = u.AppID, u.BotID
	}
	return reply{"id": u.ID, "team_id": u.ws.ID, "name": u.Name, "real_name": u.RealName, "is_bot": u.BotID != "", "is_restricted": u.Restricted,
		"deleted": false, "tz": "Europe/London", "is_email_confirmed": u.Email != "", "profile": p}
}

func usersInfo(c *call) (reply, error) {
	u := c.ws.findUser(c.args.text("user"))
	if u == nil {
		return nil, failure{code: "user_not_found"}
	}
	return reply{"user": u.userProfile()}, nil
}
