package hosted

import (
	"context"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/ui"
)

// onlyOf leads from a step that the connection doesn't have to its first one.
func onlyOf(name string, show setupHandler) setupHandler {
	return func(ctx context.Context, c *ui.Call, s setupStep) (ui.View, error) {
		if steps := stepsOf(s.Connection.Connection); !slices.Contains(steps, name) {
			return c.To(pathOfStep(steps[0])), nil
		}
		return show(ctx, c, s)
	}
}

// setupDirectory is the step at the console of the directory's provider: the instructions beside the secrets, which the link
// may make and end while the connection is a draft.
type setupDirectory struct {
	setupStep
	Directory ui.DirectoryGuide
	State     ui.DirectoryState
	Made      string // the secret that was just made, which no page shows again; empty: none
	now       time.Time
}

// IsDraft reports whether the link may make and end secrets.
func (s setupDirectory) IsDraft() bool { return s.Connection.Status == doorward.ConnectionDraft }

// TakesSecret reports whether another secret can be made.
func (s setupDirectory) TakesSecret() bool {
	n := 0
	for _, one := range s.Connection.SCIM {
		if !one.IsOver(s.now) {
			n++
		}
	}
	return s.IsDraft() && n < doorward.SCIMSecretsMax
}

// HasEnded reports whether the instant has passed.
func (s setupDirectory) HasEnded(at time.Time) bool { return !s.now.Before(at) }

func (h *hosted) showSetupDirectory(ctx context.Context, c *ui.Call, s setupStep) (ui.View, error) {
	last, err := h.app.Connections.LastAttempt(ctx, c.Caller, s.Connection.ID, doorward.AttemptSCIM)
	v := s.view("directory")
	v.Scripts = copyScript
	v.Body = setupDirectory{
		setupStep: s, Directory: ui.DirectoryGuide{Product: s.Connection.Product, URL: h.app.Directories.URL()}, now: c.Now(),
		State: ui.NewDirectoryState(s.Connection.Connection, s.Connection.SCIM, last, s.Link.MakerEmail),
	}
	return v, err
}

// makeSetupSCIMSecret shows the secret in its answer, which can't be loaded again.
func (h *hosted) makeSetupSCIMSecret(ctx context.Context, c *ui.Call, s setupStep) (ui.View, error) {
	made, err := h.app.Directories.AddSecret(ctx, c.Caller, s.Connection.ID, ui.ChosenSecretDays(c))
	if err != nil {
		return ui.View{}, err
	}
	if s.Connection, err = h.app.Connections.Connection(ctx, c.Caller, s.Connection.ID); err != nil {
		return ui.View{}, err
	}
	v, err := h.showSetupDirectory(ctx, c, s)
	if body, is := v.Body.(setupDirectory); is {
		body.Made = made.Text
		v.Body = body
	}
	c.DropForm() // the language switch would send the form again, and the secret would be lost
	return v, err
}

func (h *hosted) deleteSetupSCIMSecret(ctx context.Context, c *ui.Call, s setupStep) (ui.View, error) {
	id, err := c.ID("id", doorward.PrefixSCIMSecret)
	if err == nil {
		_, err = h.app.Directories.DeleteSecret(ctx, c.Caller, s.Connection.ID, id)
	}
	return toStep(c, "directory", "setup-scim-secret-deleted"), err
}
