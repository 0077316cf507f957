package directoryrun

import (
	"cmp"
	"errors"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/directory"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/store"
)

// Step is one thing that an undo does for a person, or a group.
type Step string

// The steps.
const (
	Rejoin   Step = "rejoins"   // the membership that the run has ended comes back
	Leave    Step = "leaves"    // the membership, or the invitation, that it has made ends
	Resume   Step = "resumed"   // its reason of suspension ends
	Suspend  Step = "suspended" // the reason that it has ended holds again
	GiveRole Step = "role"      // the role from before the run
	Invite   Step = "invited"   // a new invitation goes out, in place of the one that it has revoked
	Uninvite Step = "uninvited" // the invitation that it has sent ends

	// Of places and groups, to which an undo comes before people.

	Move   Step = "moved"  // places in groups come back, or end
	Remake Step = "remade" // a group that the run has deleted comes back; so does a User without an invitation
)

// plan is what the undo does for a person, and why it leaves something as it is.
type plan struct {
	subjectID, userID string
	before, after     *doorward.DirectoryPerson // as they were before the run, and after it
	now               *doorward.DirectoryPerson
	last              doorward.DirectoryEffect // of the run, on the person
	do                []Step
	why               doorward.Undone
}

// plan compares the person with the id as they were before the run, after it, and now.
func (u *undoing) plan(id string) (p plan, err error) {
	p.subjectID = id
	effects, err := u.tx.DirectoryEffectsOf(u.ctx, u.run.ID, id)
	if err != nil || len(effects) == 0 {
		return p, err
	}
	first, last := effects[0], effects[len(effects)-1]
	p.last = last
	for _, e := range effects {
		if e.UserID != "" {
			p.userID = e.UserID
		}
	}
	if p.before, err = parsed[doorward.DirectoryPerson](first.Before); err == nil {
		p.after, err = parsed[doorward.DirectoryPerson](last.After)
	}
	if err == nil {
		p.before, err = placesOf(p.before, effects)
	}
	if err == nil && p.before != nil {
		p.before.Places, err = u.withoutJoined(p.before.Places)
	}
	if err == nil {
		p.now, err = directory.State(u.ctx, u.tx, u.con, id, false)
	}
	if err != nil {
		return p, err
	}
	if p.why = u.leave; p.why != "" {
		return p, nil
	}
	if p.why, err = changedBetween(effects); err != nil || p.why != "" {
		return p, err
	}
	p.compare(u.con.ID)
	return p, u.check(&p)
}

// placesOf returns the person with the places that they had when the run removed them: an earlier effect keeps none.
func placesOf(before *doorward.DirectoryPerson, effects []doorward.DirectoryEffect) (*doorward.DirectoryPerson, error) {
	if before == nil {
		return nil, nil
	}
	for _, e := range effects {
		if e.Kind != doorward.DirectoryRemoved {
			continue
		}
		was, err := parsed[doorward.DirectoryPerson](e.Before)
		if err != nil {
			return nil, err
		}
		with := *before
		with.Places, with.Others = was.Places, was.Others
		return &with, nil
	}
	return before, nil
}

// withoutJoined returns the places without those that the run itself has given, before it removed the person.
func (u *undoing) withoutJoined(places []doorward.DirectoryPlace) (kept []doorward.DirectoryPlace, err error) {
	for _, place := range places {
		moves, err := u.tx.DirectoryMovesOf(u.ctx, u.run.ID, place.GroupID, place.MemberID)
		if err != nil {
			return nil, err
		}
		if len(moves) == 0 || !moves[0].Joined {
			kept = append(kept, place)
		}
	}
	return kept, nil
}

// changedBetween returns why the person is left as they are if somebody else has decided about the person between two
// effects of the run: what they were before the one isn't what the other has left. Such a decision is no part of the run,
// and nobody can know what would be without it. Roles by groups follow their mappings and aren't looked at; the floor shows
// those that were given by hand.
func changedBetween(effects []doorward.DirectoryEffect) (doorward.Undone, error) {
	for i, e := range effects[min(len(effects), 1):] {
		left, err := parsed[doorward.DirectoryPerson](effects[i].After)
		if err != nil {
			return "", err
		}
		found, err := parsed[doorward.DirectoryPerson](e.Before)
		switch {
		case err != nil:
			return "", err
		case left != nil && !isMember(left) && isMember(found):
			return doorward.UndoneJoined, nil
		case left != nil && found != nil && !isMember(left) && !isInvitedAlike(left, found):
			return doorward.UndoneChangedSince, nil
		case !isDecidedAlike(left, found):
			return doorward.UndoneChangedSince, nil
		}
	}
	return "", nil
}

func isDecidedAlike(a, b *doorward.DirectoryPerson) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UserID == b.UserID && a.Floor == b.Floor && slices.Equal(a.SuspendedBy, b.SuspendedBy)
}

func isMember(p *doorward.DirectoryPerson) bool { return p != nil && p.UserID != "" }

// compare sets what is to be done, and why something isn't, by the three states alone.
func (p *plan) compare(con string) {
	switch was, is := isMember(p.before), isMember(p.after); {
	case was && is:
		p.compareMembers(con)
	case was && p.after == nil:
		p.doIf(p.now == nil, Rejoin)
	case was:
		p.why = doorward.UndoneChangedSince
	case is && p.before != nil:
		p.why = doorward.UndoneJoined
	case is:
		p.compareMade()
	default:
		p.compareInvited()
	}
}

// doIf adds a step if what the run has left is as it was then.
func (p *plan) doIf(unchanged bool, d Step) {
	if unchanged {
		p.do = append(p.do, d)
	} else {
		p.why = doorward.UndoneChangedSince
	}
}

// compareMembers is compare for somebody who was a member before the run and after it. Roles follow groups; that somebody
// has given one by hand shows in the floor.
func (p *plan) compareMembers(con string) {
	if !isMember(p.now) || p.now.UserID != p.after.UserID {
		p.why = doorward.UndoneChangedSince
		return
	}
	off := func(s *doorward.DirectoryPerson) bool { return slices.Contains(s.SuspendedBy, con) }
	if was := off(p.before); was != off(p.after) {
		d := Resume
		if was {
			d = Suspend
		}
		p.doIf(off(p.now) == off(p.after), d)
	}
	if p.before.Role != p.after.Role && p.now.Role != p.before.Role {
		p.doIf(p.now.Floor == p.after.Floor, GiveRole)
	}
}

// compareMade is compare for somebody whom the run has made a member.
func (p *plan) compareMade() {
	if p.now != nil {
		p.doIf(p.now.UserID == p.after.UserID && p.now.Floor == p.after.Floor && slices.Equal(p.now.SuspendedBy, p.after.SuspendedBy), Leave)
	}
}

// compareInvited is compare for somebody who was no member before the run, nor after it. An invitation that wasn't on its way
// before the run doesn't come back.
func (p *plan) compareInvited() {
	was, is := p.before, p.after
	switch {
	case was == nil && p.now == nil: // neither invited before, nor now
	case was == nil && is == nil: // made and removed by the run
		p.why = doorward.UndoneChangedSince
	case isMember(p.now), is == nil && p.now != nil, is != nil && p.now == nil:
		p.why = doorward.UndoneChangedSince
	case was == nil:
		p.doIf(isInvitedAlike(is, p.now), Leave)
	case is == nil && was.IsInvited():
		p.do = append(p.do, Invite)
	case is == nil:
		p.do = append(p.do, Remake)
	default:
		if d := switched(was, is); d != "" {
			p.doIf(isInvitedAlike(is, p.now), d)
		}
	}
}

// switched returns the step that takes back how somebody was switched who is no member; empty: they weren't.
func switched(was, is *doorward.DirectoryPerson) Step {
	switch {
	case was.IsInvited() && !is.IsInvited():
		return Invite
	case !was.IsInvited() && is.IsInvited():
		return Uninvite
	case was.Said.Active && !is.Said.Active:
		return Resume
	case !was.Said.Active && is.Said.Active:
		return Suspend
	}
	return ""
}

// isInvitedAlike reports whether nobody has decided about somebody who isn't a member: that an invitation has expired is no
// decision.
func isInvitedAlike(left, found *doorward.DirectoryPerson) bool {
	return left.Said.Active == found.Said.Active && (left.Invitation == found.Invitation || left.IsInvited() && found.Invitation == doorward.InvitationExpired)
}

// check drops what can't be done, and says why.
func (u *undoing) check(p *plan) error {
	var err error
	p.do = slices.DeleteFunc(p.do, func(d Step) bool {
		if err != nil {
			return true
		}
		var why doorward.Undone
		if why, err = u.obstacle(p, d); why != "" {
			p.why = why
		}
		return why != ""
	})
	return err
}

// obstacle returns why a step can't be done; empty: it can.
func (u *undoing) obstacle(p *plan, d Step) (doorward.Undone, error) {
	if (d == Invite || d == Remake) && p.now == nil {
		if why, err := u.taken(p.before.Said); why != "" || err != nil {
			return why, err
		}
	}
	if again, err := u.isChangedAgain(p, d); err != nil || again {
		return doorward.UndoneChangedSince, err
	}
	switch d {
	case Invite:
		mayCome, err := invite.MayComeBack(u.ctx, u.tx.Reader, p.before.Said.InvitationID, cmp.Or(p.now, p.before).Said.Address)
		if err == nil && !mayCome {
			return doorward.UndoneChangedSince, nil
		}
		return "", err
	case Rejoin:
		if why, err := u.taken(p.before.Said); why != "" || err != nil {
			return why, err
		}
		if _, err := u.tx.Account(u.ctx, p.before.UserID); err != nil {
			return orNone(err, doorward.UndoneErased)
		}
		return u.roleObstacle(p)
	case GiveRole:
		return u.roleObstacle(p)
	case Suspend:
		if p.now.Role == doorward.RoleOwner {
			return doorward.UndoneOwner, nil
		}
	}
	return "", nil
}

// isChangedAgain reports whether somebody else has decided about what the run has done, or has done it once more after it was
// taken back: a later run, another directory, or somebody by hand. How the person is now needn't show that.
func (u *undoing) isChangedAgain(p *plan, d Step) (bool, error) {
	switch d {
	case Rejoin:
		removed := func() (bool, error) {
			return u.tx.RemovedSince(u.ctx, u.con.TenantID, p.before.UserID, p.last.At)
		}
		return anyOf(u.isMadeAgain(p), removed, u.isInvitedByHand(p))
	case Invite, Remake:
		return anyOf(u.isMadeAgain(p), u.isInvitedByHand(p), u.isSwitchedAgain(p))
	case Uninvite:
		return anyOf(u.isInvitedByHand(p), u.isSwitchedAgain(p))
	case Resume, Suspend:
		return u.isSwitchedAgain(p)()
	case Leave:
		if !isMember(p.now) {
			return u.isInvitedByHand(p)()
		}
		return anyOf(u.isRoleDecided(p), u.isSaidByOthers(p))
	case GiveRole:
		return anyOf(u.isRoleDecided(p), u.isRoleOfOthers(p))
	}
	return false, nil
}

// anyOf reports whether one of the questions is answered with yes. It asks no further than to that one.
func anyOf(questions ...func() (bool, error)) (bool, error) {
	for _, ask := range questions {
		if yes, err := ask(); yes || err != nil {
			return yes, err
		}
	}
	return false, nil
}

// isInvitedByHand reports whether somebody has invited the person since, other than by a directory.
func (u *undoing) isInvitedByHand(p *plan) func() (bool, error) {
	return func() (bool, error) { return u.tx.InvitedSince(u.ctx, u.con.TenantID, p.last.Address, p.last.At) }
}

// isMadeAgain reports whether a later run has made or removed the person, under any id, or somebody with the address.
func (u *undoing) isMadeAgain(p *plan) func() (bool, error) {
	return func() (bool, error) {
		return u.tx.ChangedAgain(u.ctx, p.last, p.userID, [2]doorward.DirectoryEffectKind{doorward.DirectoryMade, doorward.DirectoryRemoved})
	}
}

// isSwitchedAgain reports whether a later run has switched the User on or off.
func (u *undoing) isSwitchedAgain(p *plan) func() (bool, error) {
	last := p.last
	last.Address = "" // another User with the address has states of its own
	return func() (bool, error) {
		return u.tx.ChangedAgain(u.ctx, last, "", [2]doorward.DirectoryEffectKind{doorward.DirectorySuspended, doorward.DirectoryResumed})
	}
}

// orNone returns why instead of store.ErrNone.
func orNone(err error, why doorward.Undone) (doorward.Undone, error) {
	if errors.Is(err, store.ErrNone) {
		return why, nil
	}
	return "", err
}

// taken reports whether another User has the userName or the externalId by now.
func (u *undoing) taken(said doorward.DirectoryUser) (doorward.Undone, error) {
	if said.ID == "" {
		return "", nil // the directory had said nothing of the person
	}
	named, err := u.tx.DirectoryUsersNamed(u.ctx, u.con.TenantID, said.UserName)
	if err != nil {
		return "", err
	}
	other := func(d doorward.DirectoryUser) bool { return d.ConnectionID == u.con.ID || d.UserID != said.UserID }
	if slices.ContainsFunc(named, other) {
		return doorward.UndoneAddressTaken, nil
	}
	if said.ExternalID != "" {
		_, err = u.tx.DirectoryUserByExternalID(u.ctx, u.con.ID, said.ExternalID)
		if err == nil {
			return doorward.UndoneAddressTaken, nil
		}
		if !errors.Is(err, store.ErrNone) {
			return "", err
		}
	}
	if said.UserID != "" {
		return "", nil
	}
	_, err = u.tx.UserByEmail(u.ctx, u.con.TenantID, said.Address)
	if err == nil {
		return doorward.UndoneAddressTaken, nil
	}
	return orNone(err, "")
}
