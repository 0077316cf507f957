package console

import (
	"cmp"
	"context"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/directoryrun"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

func (h *console) directoryRunRoutes() []front.Route {
	manage := front.Allowed(doorward.SSOManage)
	at := connectionPath + "/{id}/runs"
	return []front.Route{
		get(at, manage, h.directoryRuns),
		get(at+"/{run}", manage, h.directoryRun),
		get(at+"/{run}/undo", manage, h.askUndo),
		post(at+"/{run}/undo", connectionPath, manage, h.undoRun, h.askUndo),
	}
}

// runsPerPage and effectsPerPage are fewer than the rows of a list: their pages have a head.
const runsPerPage, effectsPerPage = 15, 12

// shownRun is a run with the times that its page compares.
type shownRun struct {
	directoryrun.Run
	isInTime bool
}

func shownRunOf(c *ui.Call, r directoryrun.Run) shownRun {
	return shownRun{r, c.Now().Sub(r.Last) <= doorward.UndoWithin}
}

// CanBeUndone reports whether nobody has undone it, and it isn't too late.
func (r shownRun) CanBeUndone() bool { return r.DirectoryRun.Undo == "" && r.isInTime }

// LeftTotal counts whom the undo has left as they are.
func (r shownRun) LeftTotal() int { return r.DirectoryRun.Left }

// Share is how far the undo is, for a bar: the people and groups that it has come to.
func (r shownRun) Share() int { return r.Undone + r.DirectoryRun.Left }

// runsPage is the list of what a connection's directory has done, run by run.
type runsPage struct {
	pageData
	pager
	Connection provider
	Items      []shownRun
}

func (h *console) directoryRuns(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	body := runsPage{pageData: s}
	if body.Connection, err = h.connectionAt(ctx, c); err != nil {
		return ui.View{}, err
	}
	pages, window, err := readWindow(ctx, c, nil, sorting{})
	if err != nil {
		return ui.View{}, err
	}
	window.Limit, pages.size = runsPerPage, runsPerPage
	found, err := h.app.DirectoryRuns.List(ctx, c.Caller, body.Connection.ID, window)
	if err != nil {
		return ui.View{}, err
	}
	for _, one := range found.Items {
		body.Items = append(body.Items, shownRunOf(c, one))
	}
	pages.Total = found.Total
	err = pages.setLinks(ctx, c, len(found.Items), found.Prev, found.Next)
	body.pager = pages
	return autoRefresh(c, ui.View{Page: "runs", Title: "runs.title", Body: body, Wide: true}), err
}

// runPage is one run with its effects.
type runPage struct {
	pageData
	pager
	Connection provider
	Run        shownRun
	Effects    []shownEffect
	Left       []shownLeft // whom the undo has left as they are, the first of them
}

// subject is a person or a group that a run has changed.
type subject struct {
	Name string
	Path string // of the person's page; empty: none
}

// shownEffect is what one write has done, in words.
type shownEffect struct {
	directoryrun.Effect
	Subject      subject
	Changes      []effectChange
	Joined, Gone []string // names of the first who have joined or left the group
}

// Key is the key of the message about the kind.
func (e shownEffect) Key() string {
	switch {
	case e.IsGroup():
		return "runs.group." + string(e.Kind)
	case e.UserID == "" && e.Kind == doorward.DirectorySuspended:
		return "runs.effect.uninvited"
	case e.UserID == "" && e.Kind == doorward.DirectoryResumed:
		return "runs.effect.invited"
	}
	return "runs.effect." + string(e.Kind)
}

// MoreJoined and MoreGone count those who aren't named.
func (e shownEffect) MoreJoined() int { return e.JoinedTotal - len(e.Joined) }

// MoreGone is MoreJoined for those who have left.
func (e shownEffect) MoreGone() int { return e.GoneTotal - len(e.Gone) }

// effectChange is a value before and after an effect.
type effectChange struct {
	Label, Was, Is string
	IsRole         bool
}

// shownLeft is somebody whom an undo leaves as they are, with the key of why.
type shownLeft struct {
	Subject subject
	Why     string
}

// undoneReasons are the reasons that have a message of their own.
var undoneReasons = []doorward.Undone{
	doorward.UndoneChangedSince, doorward.UndoneErased, doorward.UndoneAddressTaken, doorward.UndoneNameTaken, doorward.UndoneRoleTooHigh, doorward.UndoneRoleGone,
	doorward.UndoneOwner, doorward.UndoneJoined, doorward.UndoneFrozen, doorward.UndoneClosing, doorward.Undone(doorward.CodeLastOwner), doorward.Undone(doorward.CodeQuotaExceeded),
	doorward.Undone(doorward.CodeValidationFailed),
}

func undoneKey(why doorward.Undone) string {
	if slices.Contains(undoneReasons, why) {
		return "runs.why." + string(why)
	}
	return "runs.why.unknown"
}

// runAt returns the connection and the run that the path names.
func (h *console) runAt(ctx context.Context, c *ui.Call) (p provider, r shownRun, err error) {
	if p, err = h.connectionAt(ctx, c); err != nil {
		return p, r, err
	}
	id, err := c.ID("run", doorward.PrefixRun)
	if err != nil {
		return p, r, err
	}
	found, err := h.app.DirectoryRuns.Get(ctx, c.Caller, p.ID, id)
	return p, shownRunOf(c, found), err
}

func (h *console) directoryRun(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	body := runPage{pageData: s}
	if body.Connection, body.Run, err = h.runAt(ctx, c); err != nil {
		return ui.View{}, err
	}
	if err := h.fillEffects(ctx, c, &body); err != nil {
		return ui.View{}, err
	}
	body.Left, err = h.shownLeftOf(ctx, c, body.Connection.ID, body.Run.ID, body.Run.Left)
	return autoRefresh(c, ui.View{Page: "run", Title: "runs.run", Body: body, Wide: true}), err
}

func (h *console) fillEffects(ctx context.Context, c *ui.Call, body *runPage) error {
	pages, window, err := readWindow(ctx, c, nil, sorting{})
	if err != nil {
		return err
	}
	window.Limit, pages.size = effectsPerPage, effectsPerPage
	found, err := h.app.DirectoryRuns.Effects(ctx, c.Caller, body.Connection.ID, body.Run.ID, window)
	if err != nil {
		return err
	}
	for _, one := range found.Items {
		shown := shownEffect{Effect: one, Subject: subjectOf(c, one), Changes: changesOf(one)}
		if shown.Joined, err = h.namesOf(ctx, c, one.Joined); err == nil {
			shown.Gone, err = h.namesOf(ctx, c, one.Gone)
		}
		if err != nil {
			return err
		}
		body.Effects = append(body.Effects, shown)
	}
	pages.Total = found.Total
	err = pages.setLinks(ctx, c, len(found.Items), found.Prev, found.Next)
	body.pager = pages
	return err
}

// namedMembers is how many members of a group an effect names.
const namedMembers = 5

// namesOf returns the names of the first people; of those who are no members any more the ids.
func (h *console) namesOf(ctx context.Context, c *ui.Call, ids []string) (names []string, err error) {
	for _, id := range ids[:min(len(ids), namedMembers)] {
		name, err := h.memberName(ctx, c, id)
		if doorward.HasCode(err, doorward.CodeNotFound) {
			name, err = id, nil
		}
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// subjectOf returns whom or what an effect has changed, under the name after it, or else before it.
func subjectOf(c *ui.Call, e directoryrun.Effect) subject {
	s := subject{Name: e.SubjectID}
	for _, g := range []*doorward.DirectoryGroupState{e.GroupBefore, e.GroupAfter} {
		if g != nil {
			s.Name = g.DisplayName
		}
	}
	for _, p := range []*doorward.DirectoryPerson{e.PersonBefore, e.PersonAfter} {
		if p != nil {
			s.Name = cmp.Or(p.Name, p.Address)
		}
	}
	if e.PersonAfter != nil && e.PersonAfter.UserID != "" {
		s.Path = c.Site().BasePath() + "/console/people/" + e.PersonAfter.UserID
	}
	return s
}

// changesOf returns what is another value after the effect. Of what is new, or gone, the address and the role say enough.
func changesOf(e directoryrun.Effect) (all []effectChange) {
	add := func(label, was, is string, isRole bool) {
		if was != is {
			all = append(all, effectChange{label, was, is, isRole})
		}
	}
	if e.IsGroup() {
		var was, is doorward.DirectoryGroupState
		if e.GroupBefore != nil && e.GroupAfter != nil {
			was, is = *e.GroupBefore, *e.GroupAfter
		}
		add("field.name", was.DisplayName, is.DisplayName, false)
		return all
	}
	var was, is doorward.DirectoryPerson
	if e.PersonBefore != nil {
		was = *e.PersonBefore
	}
	if e.PersonAfter != nil {
		is = *e.PersonAfter
	}
	add("field.email", was.Address, is.Address, false)
	if e.PersonBefore != nil && e.PersonAfter != nil {
		add("field.name", was.Name, is.Name, false)
	}
	add("field.role", string(was.Role), string(is.Role), true)
	return all
}

// lookedThrough is in how many effects the page of an undo looks for the names of people.
const lookedThrough = 1000

// subjectsIn returns the people and groups of a run, by their ids. In a large run some are missing.
func (h *console) subjectsIn(ctx context.Context, c *ui.Call, conID, runID string) (map[string]subject, error) {
	all := map[string]subject{}
	for window := (doorward.Window{Limit: 200, Sort: "-at"}); len(all) < lookedThrough; {
		found, err := h.app.DirectoryRuns.Effects(ctx, c.Caller, conID, runID, window)
		if err != nil {
			return nil, err
		}
		for _, e := range found.Items {
			if _, known := all[e.SubjectID]; !known {
				all[e.SubjectID] = subjectOf(c, e)
			}
		}
		if found.Next == nil {
			break
		}
		window.After = *found.Next
	}
	return all, nil
}

// named returns the subject of the id; its id for one that isn't known.
func named(all map[string]subject, id string) subject {
	if s, known := all[id]; known {
		return s
	}
	return subject{Name: id}
}

func (h *console) shownLeftOf(ctx context.Context, c *ui.Call, conID, runID string, left []directoryrun.Left) (all []shownLeft, err error) {
	if len(left) == 0 {
		return nil, nil
	}
	subjects, err := h.subjectsIn(ctx, c, conID, runID)
	for _, l := range left {
		all = append(all, shownLeft{named(subjects, l.SubjectID), undoneKey(l.Why)})
	}
	return all, err
}

// undoQuestion is the page that asks to confirm an undo, with what it would do.
type undoQuestion struct {
	pageData
	Connection provider
	Run        shownRun
	IsShown    bool // what follows is known; not after a refusal
	Back       []shownBack
	Left       []shownLeft
	BackTotal  int
	LeftTotal  int
	Unlooked   int // people whom the preview has not looked at
}

// shownBack is somebody for whom an undo does something.
type shownBack struct {
	Subject subject
	Does    []string // keys of messages
}

// shownOfUndo is how many people of each kind the page names.
const shownOfUndo = 50

func (h *console) askUndo(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	q := undoQuestion{pageData: s}
	if q.Connection, q.Run, err = h.runAt(ctx, c); err != nil {
		return ui.View{}, err
	}
	if q.Run.CanBeUndone() && !c.WasRefused() {
		err = h.fillUndo(ctx, c, &q)
		if doorward.HasCode(err, doorward.CodeStepUpRequired) {
			return c.ProveFirst(connectionPath + "/" + q.Connection.ID + "/runs/" + q.Run.ID + "/undo"), nil
		}
	}
	return ui.View{Page: "runundo", Title: "runs.undo.title", Body: q}, err
}

func (h *console) fillUndo(ctx context.Context, c *ui.Call, q *undoQuestion) error {
	would, err := h.app.DirectoryRuns.Try(ctx, c.Caller, q.Connection.ID, q.Run.ID)
	if err != nil {
		return err
	}
	subjects, err := h.subjectsIn(ctx, c, q.Connection.ID, q.Run.ID)
	if err != nil {
		return err
	}
	q.IsShown, q.BackTotal, q.LeftTotal, q.Unlooked = true, would.BackTotal, would.LeftTotal, would.People-would.Looked
	for _, b := range would.Back[:min(len(would.Back), shownOfUndo)] {
		one := shownBack{Subject: named(subjects, b.SubjectID)}
		for _, step := range b.Does {
			one.Does = append(one.Does, "runs.does."+string(step))
		}
		q.Back = append(q.Back, one)
	}
	for _, l := range would.Left[:min(len(would.Left), shownOfUndo)] {
		q.Left = append(q.Left, shownLeft{named(subjects, l.SubjectID), undoneKey(l.Why)})
	}
	return nil
}

// MoreBack and MoreLeft count those who aren't named.
func (q undoQuestion) MoreBack() int { return q.BackTotal - len(q.Back) }

// MoreLeft is MoreBack for those who stay as they are.
func (q undoQuestion) MoreLeft() int { return q.LeftTotal - len(q.Left) }

func (h *console) undoRun(ctx context.Context, c *ui.Call) (ui.View, error) {
	p, r, err := h.runAt(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	_, err = h.app.DirectoryRuns.Undo(ctx, c.Caller, p.ID, r.ID)
	return redirectDone(c, connectionPath+"/"+p.ID+"/runs/"+r.ID, "run-undo", nil), err
}
