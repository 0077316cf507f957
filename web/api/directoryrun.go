package api

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/directoryrun"
	"github.com/doorward/doorward/web/front"
)

// directoryRunRoutes show what a connection's directory has done.
func (a *api) directoryRunRoutes() []front.Route {
	guard := front.Allowed(doorward.SSOManage)
	return []front.Route{
		front.On("GET /api/v2/sso/connections/{id}/runs", guard, front.JSON(http.StatusOK, a.directoryRuns), docDirectoryRuns),
		front.On("GET /api/v2/sso/connections/{id}/runs/{runId}", guard, front.JSON(http.StatusOK, a.directoryRun), docDirectoryRun),
		front.On("POST /api/v2/sso/connections/{id}/runs/{runId}/undo", front.Allowed(doorward.DirectoryUndo), front.JSON(http.StatusAccepted, a.undoDirectoryRun).WithDryRun(), docUndoDirectoryRun),
	}
}

type undoLeftView struct {
	UserID  string          `json:"userId,omitempty" doc:"The account; of people who were only invited the id that the directory knows; absent for a group"`
	GroupID string          `json:"groupId,omitempty" example:"grp_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	Why     doorward.Undone `json:"why" example:"changed_since"`
}

type directoryUndoView struct {
	State doorward.UndoState `json:"state" enum:"running,done"`
	Done  int                `json:"done" doc:"People and groups that are as they were before the run"`
	Left  []undoLeftView     `json:"left" doc:"Whom the undo has left as they are, and why: 100 at most"`
	Total int                `json:"leftTotal" doc:"How many the undo has left as they are"`
}

type directoryRunView struct {
	ID        string             `json:"id" example:"run_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	From      time.Time          `json:"from" example:"2026-03-02T09:30:00Z"`
	To        *time.Time         `json:"to,omitempty" example:"2026-03-02T09:41:12Z" doc:"When it changed something last; absent while the run may still grow"`
	Made      int                `json:"made" example:"12" doc:"People who were made members, or invited"`
	Changed   int                `json:"changed" doc:"Changes of other kinds, those of groups and of invitations included"`
	Suspended int                `json:"suspended" doc:"Members whom it has suspended"`
	Removed   int                `json:"removed" doc:"People whom it has removed, members or invited"`
	Undo      *directoryUndoView `json:"undo,omitempty" doc:"Absent if nobody has asked for it"`
}

func viewDirectoryRun(r directoryrun.Run) directoryRunView {
	v := directoryRunView{ID: r.ID, From: r.From, Made: r.Made, Changed: r.Changed, Suspended: r.Suspended, Removed: r.Removed}
	if !r.IsOpen {
		v.To = &r.Last
	}
	if r.Undo != "" {
		v.Undo = &directoryUndoView{State: r.Undo, Done: r.Undone, Left: viewLeft(r.Left), Total: r.DirectoryRun.Left}
	}
	return v
}

func viewLeft(all []directoryrun.Left) []undoLeftView {
	views := []undoLeftView{}
	for _, l := range all {
		v := undoLeftView{UserID: l.UserID, Why: l.Why}
		switch {
		case l.IsGroup():
			v.GroupID = l.SubjectID
		case l.UserID == "":
			v.UserID = l.SubjectID
		}
		views = append(views, v)
	}
	return views
}

type directoryRunList struct {
	Items []directoryRunView `json:"items"`
	front.PageInfo
}

var docDirectoryRuns = front.Doc{
	ID: "listDirectoryRuns", Tag: "Sign-on", Summary: "List what a connection's directory has done",
	Description: "The latest first. The changes that the directory has made without a pause of 10 minutes are a run, which ends after a day in any case. Runs are kept for 30 days.",
	List:        true,
	Sort:        []string{"from"},
	Errors:      []doorward.Code{doorward.CodeNotFound},
}

func (a *api) directoryRuns(ctx context.Context, c *front.Call, _ front.None) (out directoryRunList, err error) {
	id, err := connectionID(c)
	if err != nil {
		return out, err
	}
	out.Items, out.PageInfo, err = front.List(ctx, c, front.With(id, a.app.DirectoryRuns.List), viewDirectoryRun)
	return out, err
}

type directoryStateView struct {
	Address     string        `json:"address,omitempty" example:"ann@acme.example"`
	Name        string        `json:"name,omitempty" example:"Ann Lee" doc:"Of the person, or of the group"`
	Role        doorward.Role `json:"role,omitempty" example:"USER" doc:"Absent for people who are only invited"`
	SuspendedBy []string      `json:"suspendedBy,omitempty" example:"[\"con_5tqm7x3yh4n6rj7wd2c5tpae7k\"]"`
	Groups      []string      `json:"groups,omitempty" doc:"Names of the groups that somebody was in who was removed"`
	Invited     bool          `json:"invited,omitempty" doc:"The person has an invitation that was not accepted yet"`
}

type directoryMovesView struct {
	Users []string `json:"users" doc:"Ids that the directory knows: 100 at most"`
	Total int      `json:"total"`
}

type directoryEffectView struct {
	ID      string                       `json:"id" example:"7dk5m2x3yh4n6rj7wd2c5tpae7"`
	At      time.Time                    `json:"at"`
	Kind    doorward.DirectoryEffectKind `json:"kind" enum:"made,changed,suspended,resumed,removed"`
	Subject string                       `json:"subject" example:"usr_5tqm7x3yh4n6rj7wd2c5tpae7k" doc:"The User or Group, by the id that the directory knows"`
	Account string                       `json:"account,omitempty" example:"usr_5tqm7x3yh4n6rj7wd2c5tpae7k" doc:"The person's id in this API; absent for groups, and for people who are only invited"`
	Before  *directoryStateView          `json:"before,omitempty" doc:"Absent if it was not there before"`
	After   *directoryStateView          `json:"after,omitempty" doc:"Absent if it is gone"`
	Joined  *directoryMovesView          `json:"joined,omitempty" doc:"Who has come into the group"`
	Left    *directoryMovesView          `json:"left,omitempty" doc:"Who has left the group"`
	Undone  doorward.Undone              `json:"undone,omitempty" example:"done" doc:"What the undo has made of it: done, or why it has left things as they are. Absent without an undo, and while it has not come to this"`
}

func viewPerson(p *doorward.DirectoryPerson) *directoryStateView {
	if p == nil {
		return nil
	}
	v := directoryStateView{Address: p.Address, Name: p.Name, Role: p.Role, SuspendedBy: p.SuspendedBy, Invited: p.IsInvited()}
	for _, place := range p.Places {
		v.Groups = append(v.Groups, place.Name)
	}
	return &v
}

func viewGroup(g *doorward.DirectoryGroupState) *directoryStateView {
	if g == nil {
		return nil
	}
	return &directoryStateView{Name: g.DisplayName}
}

func viewMoved(users []string, total int) *directoryMovesView {
	if total == 0 {
		return nil
	}
	return &directoryMovesView{users, total}
}

func viewEffect(e directoryrun.Effect) directoryEffectView {
	v := directoryEffectView{
		ID: e.ID, At: e.At, Kind: e.Kind, Subject: e.SubjectID, Account: e.UserID, Undone: e.Undone,
		Before: viewPerson(e.PersonBefore), After: viewPerson(e.PersonAfter),
		Joined: viewMoved(e.Joined, e.JoinedTotal), Left: viewMoved(e.Gone, e.GoneTotal),
	}
	if e.IsGroup() {
		v.Before, v.After = viewGroup(e.GroupBefore), viewGroup(e.GroupAfter)
	}
	return v
}

// directoryRunDetail is a directoryRunView with the run's effects. It is written out: the OpenAPI document leaves out the fields
// of an embedded type that isn't exported.
type directoryRunDetail struct {
	ID        string             `json:"id" example:"run_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	From      time.Time          `json:"from" example:"2026-03-02T09:30:00Z"`
	To        *time.Time         `json:"to,omitempty" example:"2026-03-02T09:41:12Z" doc:"When it changed something last; absent while the run may still grow"`
	Made      int                `json:"made" example:"12" doc:"People who were made members, or invited"`
	Changed   int                `json:"changed" doc:"Changes of other kinds, those of groups and of invitations included"`
	Suspended int                `json:"suspended" doc:"Members whom it has suspended"`
	Removed   int                `json:"removed" doc:"People whom it has removed, members or invited"`
	Undo      *directoryUndoView `json:"undo,omitempty" doc:"Absent if nobody has asked for it"`

	Items []directoryEffectView `json:"items" doc:"Its effects"`
	front.PageInfo
}

var docDirectoryRun = front.Doc{
	ID: "getDirectoryRun", Tag: "Sign-on", Summary: "Show what a connection's directory has done in a run",
	Description: "With its effects on people and groups, the oldest first.",
	List:        true,
	Sort:        []string{"at"},
	Errors:      []doorward.Code{doorward.CodeNotFound},
}

// runIDs returns the ids of the connection and the run in the path.
func runIDs(c *front.Call) (connection, run string, err error) {
	if connection, err = connectionID(c); err == nil {
		run, err = c.ID("runId", doorward.PrefixRun)
	}
	return connection, run, err
}

func (a *api) directoryRun(ctx context.Context, c *front.Call, _ front.None) (out directoryRunDetail, err error) {
	connection, id, err := runIDs(c)
	if err != nil {
		return out, err
	}
	run, err := a.app.DirectoryRuns.Get(ctx, c.Caller, connection, id)
	if err != nil {
		return out, err
	}
	v := viewDirectoryRun(run)
	out = directoryRunDetail{ID: v.ID, From: v.From, To: v.To, Made: v.Made, Changed: v.Changed, Suspended: v.Suspended, Removed: v.Removed, Undo: v.Undo}
	out.Items, out.PageInfo, err = front.List(ctx, c, func(ctx context.Context, by doorward.Caller, w doorward.Window) (doorward.Page[directoryrun.Effect], error) {
		return a.app.DirectoryRuns.Effects(ctx, by, connection, id, w)
	}, viewEffect)
	return out, err
}

type undoRunInput struct {
	DryRun bool `json:"dryRun,omitempty" doc:"Change nothing, and say what would come back"`
}

// OptionalBody implements front.OptionalBody.
func (undoRunInput) OptionalBody() {}

type broughtBackView struct {
	UserID  string              `json:"userId,omitempty" doc:"As in undo.left"`
	GroupID string              `json:"groupId,omitempty" example:"grp_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	Does    []directoryrun.Step `json:"does" example:"[\"rejoins\"]" doc:"rejoins, leaves, resumed, suspended, role, invited, uninvited; moved: places in groups come back, or end; remade: the group comes back, or a User who had no invitation"`
}

type undoPreviewView struct {
	People    int               `json:"people" doc:"How many people the run has changed"`
	Looked    int               `json:"looked" doc:"How many of these the dry run has looked at: those whom the run changed last, as many as it comes to in 1.5 s"`
	Back      []broughtBackView `json:"back" doc:"What would be undone: 200 people and groups at most"`
	BackTotal int               `json:"backTotal" doc:"For how many of those whom it has looked at, and groups, something would be undone"`
	Left      []undoLeftView    `json:"left" doc:"Who would be left as they are, and why: 200 at most"`
	LeftTotal int               `json:"leftTotal" doc:"How many of those whom it has looked at would be left as they are"`
}

type undoneRunView struct {
	Undo    *directoryUndoView `json:"undo,omitempty" doc:"How far it is; absent for a dry run"`
	Preview *undoPreviewView   `json:"preview,omitempty" doc:"Only for a dry run"`
}

var docUndoDirectoryRun = front.Doc{
	ID: "undoDirectoryRun", Tag: "Sign-on", Summary: "Take back what a directory has done in a run",
	Description: "Memberships, reasons of suspension, roles and places in groups come back where nobody has changed them since; addresses, attributes and sessions don't. The undo goes on after the answer 202: `GET` the run to see how far it is. A run can be undone once, within 7 days after its last change; what the directory writes from then on belongs to another run. Mend the directory first, or disable the connection: its next synchronisation may do the same again. A dry run does the same and rolls it back; it is answered with 200.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodeAlreadyUndone, doorward.CodeUndoOver},
}

func (a *api) undoDirectoryRun(ctx context.Context, c *front.Call, in undoRunInput) (out undoneRunView, err error) {
	connection, id, err := runIDs(c)
	if err != nil {
		return out, err
	}
	if !in.DryRun {
		run, err := a.app.DirectoryRuns.Undo(ctx, c.Caller, connection, id)
		if err == nil {
			out.Undo = viewDirectoryRun(run).Undo
		}
		return out, err
	}
	c.SetDryRun()
	p, err := a.app.DirectoryRuns.Try(ctx, c.Caller, connection, id)
	if err != nil {
		return out, err
	}
	out.Preview = &undoPreviewView{
		People: p.People, Looked: p.Looked, Back: []broughtBackView{}, BackTotal: p.BackTotal, Left: viewLeft(p.Left), LeftTotal: p.LeftTotal,
	}
	for _, b := range p.Back {
		out.Preview.Back = append(out.Preview.Back, viewBack(b))
	}
	return out, nil
}

func viewBack(b directoryrun.Back) broughtBackView {
	if b.IsGroup() {
		return broughtBackView{GroupID: b.SubjectID, Does: b.Does}
	}
	return broughtBackView{UserID: cmp.Or(b.UserID, b.SubjectID), Does: b.Does}
}
