package slack

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"time"

	"github.com/slack-go/slack/socketmode"

	"bobbin/app/core"
)

// How a lost socket is opened again.
const (
	minReconnect = time.Second
	maxReconnect = time.Minute
)

// socketLoop reads what Slack sends over a socket that Bobbin opens, until ctx ends.
func (s *Service) socketLoop(ctx context.Context) {
	for wait := minReconnect; ctx.Err() == nil; wait = min(2*wait, maxReconnect) {
		began := time.Now()
		err := s.readSocket(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > maxReconnect {
			wait = minReconnect
		}
		s.Logger.WarnContext(ctx, "socket of Slack lost, connecting again", "wait", wait, "err", err)
		_ = sleep(ctx, wait)
	}
}

// readSocket reads from connections until one cannot be opened.
func (s *Service) readSocket(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	client := socketmode.New(newClient(s.Settings, "").Client, socketmode.OptionLog(log.New(io.Discard, "", 0)))
	ended := make(chan error, 1)
	go func() { ended <- client.RunContext(ctx) }()
	defer func() { // closed by RunContext, which ends with ctx
		cancel()
		if ended != nil {
			<-ended //nolint:errcheck // it was canceled
		}
	}()
	for {
		select {
		case e := <-client.Events:
			s.receive(ctx, client, e)
		case err := <-ended:
			ended = nil
			return err
		}
	}
}

// receive stores what the socket brought, and acknowledges it. What is not stored is not
// acknowledged: Slack sends an event again.
func (s *Service) receive(ctx context.Context, client *socketmode.Client, e socketmode.Event) {
	request := e.Request
	if bad, ok := e.Data.(*socketmode.ErrorBadMessage); ok { // the library does not know every event
		request = new(socketmode.Request)
		if json.Unmarshal(bad.Message, request) != nil {
			return
		}
	}
	if request == nil || request.EnvelopeID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	err := s.storeEnvelope(ctx, request)
	if err != nil && !errors.Is(err, core.ErrInvalid) {
		s.Logger.WarnContext(ctx, "what Slack sent is not stored", "type", request.Type, "err", err)
		return
	}
	if err := client.AckCtx(ctx, request.EnvelopeID, nil); err != nil {
		s.Logger.DebugContext(ctx, "not acknowledged to Slack, which sends it again", "err", err)
	}
}

// storeEnvelope stores an envelope of the socket.
func (s *Service) storeEnvelope(ctx context.Context, r *socketmode.Request) error {
	switch r.Type {
	case socketmode.RequestTypeEventsAPI:
		_, err := s.intake.Event(ctx, r.Payload)
		return err
	case socketmode.RequestTypeInteractive:
		return s.intake.Interaction(ctx, r.Payload)
	case socketmode.RequestTypeSlashCommands:
		var c command
		if err := json.Unmarshal(r.Payload, &c); err != nil {
			return core.Errorf(core.ErrInvalid, "this is not a slash command of Slack")
		}
		return s.intake.storeCommand(ctx, c)
	}
	return nil
}
