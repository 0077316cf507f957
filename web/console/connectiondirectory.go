package console

import (
	"context"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/app/directory"
	"github.com/doorward/doorward/web/ui"
)

// outsides are what a directory can do with addresses outside of the proved domains, the default first.
var outsides = []string{string(doorward.OutsideInvite), string(doorward.OutsideRefuse)}

// Outsides are the choices.
func (connectionPage) Outsides() []string { return outsides }

// MaxDirectorySecrets is how many secrets of a directory are alive at once.
func (connectionPage) MaxDirectorySecrets() int { return doorward.SCIMSecretsMax }

// LiveDirectorySecrets counts those that have not ended.
func (p connectionPage) LiveDirectorySecrets() (n int) {
	for _, s := range p.Connection.SCIM {
		if !s.IsOver(p.Connection.now) {
			n++
		}
	}
	return n
}

// directoryForm are the values of the form about the directory: as typed or as stored.
type directoryForm struct {
	Outside       string
	EmptyByRemove bool
}

// DirectoryForm returns the values of the form.
func (p connectionPage) DirectoryForm(f ui.Frame) directoryForm {
	if f.Form.Has("outside") { // the form is shown again
		return directoryForm{f.Form.Get("outside"), f.Form.Get("emptyByRemove") != ""}
	}
	return directoryForm{string(p.Connection.Outside), p.Connection.EmptyByRemove}
}

// directoryFields are the fields of that form.
func directoryFields(c *ui.Call, p provider) []editedField {
	fields := []editedField{
		wordField(c, "outside", "scim.outside", "outside", string(p.Outside), outsides), choiceField(c, "emptyByRemove", "scim.emptyByRemove", "check", checked(p.EmptyByRemove)),
	}
	if p.IsDirectory() {
		fields = append(fields, textField(c, "name", "field.name", p.Name))
	}
	return fields
}

func (h *console) fillDirectory(ctx context.Context, c *ui.Call, body *connectionPage) error {
	p := body.Connection
	body.Directory = ui.DirectoryGuide{Product: p.Product, URL: h.app.Directories.URL()}
	last, err := h.app.Connections.LastAttempt(ctx, c.Caller, p.ID, doorward.AttemptSCIM)
	if err == nil && p.IsDirectory() {
		body.SetupLink, err = h.setupLinkOf(ctx, c, p.ID)
	}
	body.State = ui.NewDirectoryState(p.Connection, p.SCIM, last, "")
	if err != nil {
		return err
	}
	runs, err := h.app.DirectoryRuns.List(ctx, c.Caller, p.ID, doorward.Window{Limit: 1})
	if err == nil && len(runs.Items) > 0 {
		run := shownRunOf(c, runs.Items[0])
		body.LastRun = &run
	}
	return err
}

// editDirectory saves what the directory may do, and what a connection is called that is a directory alone.
func (h *console) editDirectory(ctx context.Context, c *ui.Call) (ui.View, error) {
	p, err := h.connectionAt(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	outside, empties := c.Value("outside"), c.Value("emptyByRemove") != ""
	change := connection.Change{Versions: version(c), Draft: connection.Draft{Outside: &outside, EmptyByRemove: &empties}}
	if p.IsDirectory() {
		name := strings.TrimSpace(c.Value("name"))
		change.Name = &name
	}
	_, _, err = h.app.Connections.Edit(ctx, c.Caller, p.ID, change)
	return redirectDone(c, connectionPath+"/"+p.ID, "connection", nil), faultsToFormFields(err)
}

// madeSCIMSecret is the only page that shows a secret of a directory.
type madeSCIMSecret struct {
	pageData
	directory.NewSecret
	Connection provider
	URL        string
}

// makeSCIMSecret shows the secret in its answer, which can't be loaded again.
func (h *console) makeSCIMSecret(ctx context.Context, c *ui.Call) (ui.View, error) {
	p, err := h.connectionAt(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	made, err := h.app.Directories.AddSecret(ctx, c.Caller, p.ID, ui.ChosenSecretDays(c))
	if err != nil {
		return ui.View{}, err
	}
	s, err := h.pageData(ctx, c)
	c.DropForm() // the language switch would send the form again, and the secret would be lost
	body := madeSCIMSecret{s, made, p, h.app.Directories.URL()}
	return ui.View{Page: "scimsecretmade", Title: "scim.secret.made", Scripts: []string{"secret.js"}, Body: body}, err
}
