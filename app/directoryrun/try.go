package directoryrun

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/directory"
	"github.com/doorward/doorward/app/provider"
)

const (
	// tryFor is how long a dry run goes on to further people: its answer has to come within 3 s.
	tryFor = 1500 * time.Millisecond
	// Listed is how many people and groups a dry run names, of those who come back and of those who are left; it counts the
	// others.
	Listed = 200
	// triedMax bounds how many people, and how many groups, a dry run comes to, for its memory.
	triedMax = 10_000
)

// Preview is what an undo would do.
type Preview struct {
	Back                 []Back // people and groups for whom it would do something, the first of them
	Left                 []Left // those whom it would leave as they are, the first of them
	BackTotal, LeftTotal int
	People               int // how many people the run has changed
	Looked               int // to how many of these the dry run has come until its time was over: those changed last
}

// Back is what an undo does for a person or a group.
type Back struct {
	SubjectID, UserID string
	Does              []Step
}

// IsGroup reports whether it is a group.
func (b Back) IsGroup() bool { return doorward.DirectoryEffect{SubjectID: b.SubjectID}.IsGroup() }

// errTried rolls a dry run back.
var errTried = errors.New("directoryrun: a dry run")

// Try returns what Undo would do, and changes nothing: it does the same, some people at a time, the latest first, and rolls
// each transaction back. Errors: those of Undo.
func (r *Runs) Try(ctx context.Context, by doorward.Caller, connectionID, id string) (Preview, error) {
	run, err := r.mayTry(ctx, by, connectionID, id)
	if err != nil {
		return Preview{}, err
	}
	t := trial{r: r, ctx: ctx, run: run, away: map[string]string{}}
	groups, err := r.db.Read().SubjectsToUndo(ctx, id, doorward.PrefixGroup, triedMax)
	if err != nil {
		return t.Preview, err
	}
	people, err := r.db.Read().PeopleToUndo(ctx, id, triedMax)
	if err == nil {
		t.People, err = r.db.Read().CountPeopleToUndo(ctx, id)
	}
	over := time.Now().Add(r.tryFor)
	for some := range slices.Chunk(groups, peopleAtOnce) {
		if err == nil && time.Now().Before(over) {
			_, err = t.batch(some, (*attempt).group)
		}
	}
	for some := range slices.Chunk(people, peopleAtOnce) {
		if err == nil && time.Now().Before(over) {
			t.Looked += len(some)
			_, err = t.batch(some, (*attempt).person)
		}
	}
	return t.Preview, err
}

// mayTry returns the run if the caller may undo it.
func (r *Runs) mayTry(ctx context.Context, by doorward.Caller, connectionID, id string) (run doorward.DirectoryRun, err error) {
	con, err := provider.Find(ctx, r.db.Read(), by, connectionID)
	if err != nil {
		return run, err
	}
	_, err = r.writer.Do(ctx, by, doorward.DirectoryUndo, provider.Object(con), func(tx *access.Tx) (err error) {
		if run, err = find(ctx, tx.Reader, by, connectionID, id); err == nil {
			err = mayUndo(run, tx)
		}
		if err == nil {
			err = errTried
		}
		return err
	})
	run.UndoBy = by.ID
	if errors.Is(err, errTried) {
		err = nil
	}
	return run, err
}

// trial is a dry run.
type trial struct {
	Preview
	r   *Runs
	ctx context.Context
	run doorward.DirectoryRun
	// What earlier transactions have done, which were rolled back: away has the ids of people whom they have taken away, by
	// the account, userName and externalId that are free with that; the others count who has come and gone.
	away             map[string]string
	members, invited int64
}

// outcome is what an undo does for one person or group, and why it leaves something.
type outcome struct {
	Back
	why  doorward.Undone
	keys []string // of trial.away, of somebody who was taken away
}

// batch tries an undo of people or groups, by one for each, in a transaction.
func (t *trial) batch(ids []string, one func(*attempt, string) (outcome, error)) (a attempt, err error) {
	err = t.r.transaction(t.ctx, t.run, func(u *undoing) error {
		a = attempt{undoing: u, trial: t, done: map[string]bool{}, members: t.members, invited: t.invited}
		return a.all(ids, one)
	})
	if !errors.Is(err, errTried) {
		return a, err
	}
	for _, o := range a.outcomes {
		t.add(o)
	}
	t.members, t.invited = a.members, a.invited
	return a, nil
}

func (t *trial) add(o outcome) {
	for _, key := range o.keys {
		t.away[key] = o.SubjectID
	}
	if len(o.Does) > 0 {
		if t.BackTotal++; t.BackTotal <= Listed {
			t.Back = append(t.Back, o.Back)
		}
	}
	if o.why != "" {
		if t.LeftTotal++; t.LeftTotal <= Listed {
			t.Left = append(t.Left, Left{o.SubjectID, o.UserID, o.why})
		}
	}
}

// attempt is one transaction of a dry run.
type attempt struct {
	*undoing
	trial            *trial
	done             map[string]bool // people of earlier transactions who were taken away here, too, and groups that are there
	outcomes         []outcome
	members, invited int64 // how many more earlier transactions have made, without what was done again here; at the end, with this one
}

// all tries one for each of ids, and returns errTried.
func (a *attempt) all(ids []string, one func(*attempt, string) (outcome, error)) error {
	members, invited, err := a.count()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := a.before(id); err != nil {
			return err
		}
		o, err := a.nested(id, one)
		if err != nil {
			return err
		}
		a.outcomes = append(a.outcomes, o)
	}
	if err := a.addSince(members, invited); err != nil {
		return err
	}
	return errTried
}

// addSince adds how many more people there are than before.
func (a *attempt) addSince(members, invited int64) error {
	nowMembers, nowInvited, err := a.count()
	a.members, a.invited = a.members+nowMembers-members, a.invited+nowInvited-invited
	return err
}

// count counts people, if the tenant has a quota of them.
func (a *attempt) count() (members, invited int64, err error) {
	if a.tenant.Quotas.People == nil {
		return 0, 0, nil
	}
	return a.tx.CountPeople(a.ctx, a.tenant.ID, a.tx.Now)
}

// nested tries one for the id. A refusal leaves the person as they are, as in an undo.
func (a *attempt) nested(id string, one func(*attempt, string) (outcome, error)) (o outcome, err error) {
	err = a.tx.Nested(a.ctx, func() (err error) {
		o, err = one(a, id)
		return err
	})
	if code := codeOf(err); code != "" {
		o.Does, o.keys, o.why, err = nil, nil, doorward.Undone(code), nil
	}
	o.SubjectID = id
	return o, err
}

// group tries a group.
func (a *attempt) group(id string) (o outcome, err error) {
	if o.why = a.leave; o.why != "" {
		return o, nil
	}
	made, why, err := a.remakeGroup(id)
	if o.why = why; made {
		o.Does = []Step{Remake}
	}
	return o, err
}

// person tries a person, with the places in groups.
func (a *attempt) person(id string) (o outcome, err error) {
	moved, err := a.move(id)
	if err != nil {
		return o, err
	}
	p, err := a.undoing.person(id)
	o.UserID, o.why = p.userID, p.why
	if err != nil {
		return o, err
	}
	for _, d := range slices.Concat(moved, p.do) {
		if !slices.Contains(o.Does, d) {
			o.Does = append(o.Does, d)
		}
	}
	if slices.Contains(p.do, Leave) {
		o.keys = keysOf(p.now)
	}
	return o, a.checkQuota(p)
}

// checkQuota counts whom earlier transactions have brought back, too.
func (a *attempt) checkQuota(p plan) error {
	comes, invites := slices.Contains(p.do, Rejoin), slices.Contains(p.do, Invite)
	if !comes && !invites {
		return nil
	}
	members, invited, err := a.count()
	if err != nil {
		return err
	}
	n := members + a.members
	if invites {
		n += invited + a.invited
	}
	return a.tenant.Quotas.Check(doorward.QuotaPeople, n)
}

// keysOf returns what is free when the person is gone.
func keysOf(p *doorward.DirectoryPerson) (keys []string) {
	for kind, text := range map[string]string{"account ": p.UserID, "name ": strings.ToLower(p.Said.UserName), "address ": p.Address, "external ": p.Said.ExternalID} {
		if text != "" {
			keys = append(keys, kind+text)
		}
	}
	slices.Sort(keys)
	return keys
}

// before does what an undo has done before it comes to the person: it has taken those away who have their names by now, and
// has brought the groups back that they were in.
func (a *attempt) before(id string) error {
	if (Back{SubjectID: id}).IsGroup() {
		return nil
	}
	effects, err := a.tx.DirectoryEffectsOf(a.ctx, a.run.ID, id)
	for _, e := range effects {
		var was *doorward.DirectoryPerson
		if err == nil {
			was, err = parsed[doorward.DirectoryPerson](e.Before)
		}
		if err == nil && was != nil {
			err = a.free(id, was)
		}
	}
	return err
}

func (a *attempt) free(id string, was *doorward.DirectoryPerson) error {
	for _, key := range keysOf(was) {
		if other := a.trial.away[key]; other != "" && other != id && !a.done[other] {
			if err := a.takeAway(other); err != nil {
				return err
			}
		}
	}
	for _, place := range was.Places {
		if err := a.bringGroup(place.GroupID); err != nil {
			return err
		}
	}
	return nil
}

// takeAway takes somebody away as an earlier transaction has. They count once.
func (a *attempt) takeAway(id string) error {
	a.done[id] = true
	if err := a.before(id); err != nil {
		return err
	}
	members, invited, err := a.count()
	if err != nil {
		return err
	}
	if _, err := a.nested(id, (*attempt).person); err != nil {
		return err
	}
	nowMembers, nowInvited, err := a.count()
	a.members, a.invited = a.members+members-nowMembers, a.invited+invited-nowInvited
	return err
}

func (a *attempt) bringGroup(id string) error {
	if a.done[id] || a.leave != "" {
		return nil
	}
	a.done[id] = true
	_, _, err := a.remakeGroup(id)
	return err
}

// move tries the person's places in groups, and returns what comes back by that.
func (a *attempt) move(id string) (does []Step, err error) {
	groups, err := a.tx.GroupsToUndo(a.ctx, a.run.ID, id)
	if err != nil || len(groups) == 0 || a.leave != "" {
		return nil, err
	}
	was, err := a.role(id)
	for _, g := range groups {
		if err == nil {
			err = a.bringGroup(g)
		}
		moved := false
		if err == nil {
			moved, _, err = a.place(g, id)
		}
		if moved {
			does = []Step{Move}
		}
	}
	is, err := a.role(id)
	if err == nil && is != was {
		does = append(does, GiveRole)
	}
	return does, err
}

func (a *attempt) role(id string) (doorward.Role, error) {
	now, err := directory.State(a.ctx, a.tx, a.con, id, false)
	if err != nil || now == nil {
		return "", err
	}
	return now.Role, nil
}
