package doorward

import (
	"fmt"
	"strings"
	"time"
)

const (
	// DirectoryRunPause is the pause after which the next write of a directory begins another run.
	DirectoryRunPause = 10 * time.Minute
	// DirectoryRunMax bounds a run: a directory that never pauses begins another one a day later.
	DirectoryRunMax = 24 * time.Hour
	// DirectoryRunsKept is how long runs are kept after their last write.
	DirectoryRunsKept = 30 * 24 * time.Hour
	// UndoWithin is how long after its last write a run can be undone.
	UndoWithin = 7 * 24 * time.Hour
)

// UndoState says how far the undo of a run is.
type UndoState string

// The states of an undo; empty: nobody has asked for it.
const (
	UndoRunning UndoState = "running"
	UndoDone    UndoState = "done"
)

// Undone is what the undo of a run has made of an effect: empty, nothing yet; UndoneDone; or why it has left things as they
// are.
type Undone string

// The values of Undone that say why; a code of an error that the write has ended with is one, too.
const (
	UndoneDone         Undone = "done"           // as before the run
	UndoneChangedSince Undone = "changed_since"  // somebody else has changed it since the run
	UndoneErased       Undone = "erased"         // the account was erased since
	UndoneAddressTaken Undone = "address_taken"  // the directory has since given the name to another User
	UndoneNameTaken    Undone = "name_taken"     // the directory has since given the group's name to another one
	UndoneRoleTooHigh  Undone = "role_too_high"  // of rank OWNER, or above what the mappings give now: an OWNER gives it by hand
	UndoneRoleGone     Undone = "role_gone"      // the tenant has no such role any more
	UndoneOwner        Undone = "owner"          // an undo suspends no OWNER
	UndoneJoined       Undone = "joined"         // has become a member by a proved domain in the run, and stays one
	UndoneFrozen       Undone = "tenant_frozen"  // the tenant was frozen meanwhile
	UndoneClosing      Undone = "tenant_closing" // or was being closed
)

// DirectoryRun are the writes of a connection's directory without a pause. The numbers count effects on people; one on a
// group counts as a change.
type DirectoryRun struct {
	ID, ConnectionID, TenantID        string
	From, Last                        time.Time // of its first and its last write
	Made, Changed, Suspended, Removed int
	IsAlarmed                         bool // OWNERs were told that it ends the access of many
	Undo                              UndoState
	UndoBy                            string // the account that has asked for the undo
	UndoAt                            *time.Time
	Undone, Left                      int // people who are as before the run, and who were left as they are
}

// IsOpen reports whether a write at now would belong to the run.
func (r DirectoryRun) IsOpen(now time.Time) bool {
	return r.Undo == "" && now.Sub(r.Last) < DirectoryRunPause && now.Sub(r.From) < DirectoryRunMax
}

// Count adds an effect to the numbers of the run. Of somebody who isn't a member only the invitation ends with a suspension,
// which is a change.
func (r *DirectoryRun) Count(e DirectoryEffect) {
	switch {
	case e.IsGroup():
		r.Changed++
	case e.Kind == DirectoryMade:
		r.Made++
	case e.Kind == DirectorySuspended && e.UserID != "":
		r.Suspended++
	case e.Kind == DirectoryRemoved:
		r.Removed++
	default:
		r.Changed++
	}
}

// EffectID returns the id of the effect that was counted last. Ids of a run sort in the order of its effects.
func (r *DirectoryRun) EffectID() string {
	return fmt.Sprintf("%s.%08d", strings.TrimPrefix(r.ID, PrefixRun), r.Made+r.Changed+r.Suspended+r.Removed)
}

// DirectoryEffect is what one write of a directory has changed. Before and After are JSON, of a DirectoryPerson or of a
// DirectoryGroupState; empty: it wasn't there, or is gone.
type DirectoryEffect struct {
	ID, RunID, ConnectionID, TenantID string
	At                                time.Time
	Kind                              DirectoryEffectKind
	SubjectID                         string // of the User or Group, as the directory knows it
	UserID                            string // the account; empty: none yet
	Address                           string // of a person, canonical
	Before, After                     string
	Undone                            Undone
}

// IsGroup reports whether the effect is one on a group.
func (e DirectoryEffect) IsGroup() bool { return strings.HasPrefix(e.SubjectID, PrefixGroup) }

// DirectoryPerson is what an effect keeps of a person before and after it: what the undo of a run brings back, and what shows
// whether somebody else has changed it since. Places and Others are kept of those who are about to be removed.
type DirectoryPerson struct {
	UserID      string   `json:"userId,omitempty"` // empty: invited, or not any more
	Address     string   `json:"address"`
	Name        string   `json:"name,omitempty"`
	Role        Role     `json:"role,omitempty"`
	Floor       Role     `json:"floor,omitempty"` // what an OWNER gave by hand
	Apart       bool     `json:"apart,omitempty"` // no mapping of a group gave the role: somebody did, a sign-in, or jitRole
	SuspendedBy []string `json:"suspendedBy,omitempty"`
	// Invitation is how far somebody is who isn't a member: PENDING, or REVOKED by somebody else than the directory, or
	// EXPIRED while the directory says active; empty: the directory has switched them off.
	Invitation InvitationState  `json:"invitation,omitempty"`
	Since      time.Time        `json:"since,omitzero"` // of the membership
	Said       DirectoryUser    `json:"said,omitzero"`
	Others     []DirectoryUser  `json:"others,omitempty"` // what other directories say of the person
	Places     []DirectoryPlace `json:"places,omitempty"`
}

// IsInvited reports whether an invitation of the person is on its way.
func (p *DirectoryPerson) IsInvited() bool { return p != nil && p.Invitation == InvitationPending }

// DirectoryPlace is somebody's place in a group.
type DirectoryPlace struct {
	GroupID  string `json:"groupId"`
	Name     string `json:"name"` // of the group
	MemberID string `json:"memberId"`
}

// DirectoryGroupState is what an effect keeps of a group. Who has joined or left it is in DirectoryMove.
type DirectoryGroupState struct {
	ID          string `json:"id"`
	DisplayName string `json:"displayName"`
	ExternalID  string `json:"externalId,omitempty"`
	// Mapped are the mappings of the connection that meant the group when it was deleted.
	Mapped []string `json:"mapped,omitempty"`
}

// DirectoryMove is somebody who has joined or left a group by an effect.
type DirectoryMove struct {
	EffectID, RunID, GroupID, MemberID string
	At                                 time.Time
	Joined                             bool // else left
	Undone                             Undone
}
