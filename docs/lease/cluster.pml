/*
 * The revocation lease with several PostgreSQL servers in the DSN, to be checked
 * by spin: scripts/model.sh. ../lease.md says what is modelled and why; the code is
 * store/internal/cluster and store/lease. lease.pml models one server: rows that
 * come and go, changes that overlap, nodes that die.
 *
 * There is an old primary, which is replaced at any moment or never, and a new
 * one. Commits until then are on both. The old one doesn't notice: it claims to
 * take writes and can be read, but commits nothing any more. There is one session
 * that is ended and another that is opened, by another node on whichever server
 * is the primary. The node here polls, reads from either server, and answers
 * checks, all at once; it has connections to both servers, and sees the new one
 * at a random moment. At every step it can pause for any time, and a poll can
 * fail at every step, before or after it took effect.
 *
 * No check that begins after the answer that the session has ended accepts it,
 * and none that begins after the answer of the opening refuses the other one:
 * the assertions in Read and Check. To refuse is 401; a 503 is always allowed,
 * and is a step not taken here. Each switch NO_... removes one rule, and spin has
 * to find a check that accepts or refuses.
 *
 * If a request ends before the standby has confirmed its commit, the driver
 * cancels the wait. From then on the old primary shows a commit that may exist
 * nowhere else: Unconfirmed. A call that finds the session ended there has to commit
 * something before it answers.
 *
 * Time is counted in ticks, as in lease.pml. The clocks of the two servers run
 * together here.
 */

#ifndef L
#define L 2		/* ticks in a lease, the longest there is */
#endif

#define OLD 0
#define NEW 1

/* The servers: what each says, and of the old one how long ago it committed. */
byte end[2];		/* 0 until it ended; equal numbers of two histories are distinguished */
bit opened[2];
bit applied;		/* the node's row says that it has applied the end */
bit promoted;
byte leases;		/* timer: a lease from the last commit of the old primary */

/* The node. */
bit seen_new;	/* the floor: the new primary was seen */
bit memory;		/* the session is in memory, and valid */
bit forgot;		/* memory was discarded since the current read began */
byte fresh;		/* timer: memory is valid, and reads are allowed */
byte sent;		/* timer: the lease that begins when the poll under way is sent */
byte heartbeat;		/* timer: the lease that began with the last heartbeat */

/* The call that answers. */
byte waits;		/* timer: the lease that begins with the commit, or the finding */
bit over;		/* it was answered that the session is over, */
bit known;		/* and that the other one is open */

/* Promotion: in between neither takes writes, which is a pause. */
active proctype Promote() { promoted = 1 }

/* Rules 1 and 3, for a connection made or taken from the pool. */
#ifdef NO_FLOOR
#define OLD_MAY true
#else
#define OLD_MAY !seen_new
#endif
#ifdef NO_WAIT
#define NEW_MAY promoted
#else
#define NEW_MAY (promoted && leases == 0)
#endif

inline connect(server) {
	if
	:: atomic { OLD_MAY -> server = OLD }
	:: atomic { NEW_MAY -> seen_new = 1; server = NEW }
	fi
}

/* The node may see the new primary at any moment, and sees it when it connects to it. */
active proctype Look() { atomic { promoted -> seen_new = 1 } }

/* What is committed on the old primary is on both, if it is committed at all. */
#define COMMITS(server) (server == NEW || !promoted)
#define COMMIT(server) COMMITS(server) -> leases = (server == OLD -> L : leases)

#define MAYFAIL if :: skip :: goto idle fi

active proctype Poll() {
	bit server;
	byte position, read;
	bit claimed;		/* it has tried to say that it has applied the end */

idle:	atomic { server = OLD; read = 0; sent = L };
	if
	:: heartbeat > 0		/* no heartbeat is due */
	:: connect(server);
	   if
#ifdef NO_HEARTBEAT_FROM_SENDING
	   :: d_step { COMMIT(server) };
	      heartbeat = L
#else
	   :: d_step { COMMIT(server); heartbeat = sent }
#endif
	   :: d_step { COMMIT(server) };
	      goto idle		/* and the node gets no answer */
	   :: goto idle
	   fi
	fi;
	connect(server);	/* not always to the one that has the heartbeat */
	read = end[server];
	MAYFAIL;
	d_step {
		if
		:: read != position -> memory = 0; forgot = 1	/* a change, or another history: discard memory */
		:: else
		fi;
		position = read
	};
#ifndef NO_CORRECTION
	if
	:: claimed && !position ->	/* the row may claim what isn't applied here */
	   connect(server);
	   if
	   :: d_step { COMMITS(server) -> applied = 0; claimed = 0 }
	   :: goto idle
	   fi
	:: else
	fi;
#endif
#ifdef NO_COMMIT
	fresh = sent;
#else
	fresh = heartbeat;
#endif
	if
	:: skip
	:: claimed = claimed || position != 0;
	   connect(server);
	   d_step { if :: COMMITS(server) -> applied = (position != 0) :: else fi }	/* with or without an answer */
	fi;
	goto idle
}

#ifdef NO_GATE
#define LEASE skip
#else
#define LEASE fresh > 0		/* rule 2; else 503 */
#endif

/* Read asks the database for both sessions, answers by what it says, and keeps it,
   unless it has to be forgotten already: rule 5. It notes what was answered before
   it began. */
active proctype Read() {
	bit wasover, wasknown, server, alive, there;
	do
	:: d_step { wasover = over; wasknown = known; forgot = 0 };
#ifdef NO_LEASE_FIRST
	   connect(server);
	   LEASE;
#else
	   LEASE;
	   connect(server);
#endif
#ifdef NO_MARK_FIRST
	   forgot = 0;
#endif
	   d_step { alive = (end[server] == 0); there = opened[server] };
	   d_step {
		assert(!(wasover && alive));
		assert(!(wasknown && !there));
		if
#ifdef NO_RULE5
		:: alive -> memory = 1
#else
		:: alive && !forgot -> memory = 1
#endif
		:: else
		fi;
		wasover = 0; wasknown = 0; server = OLD; alive = 0; there = 0 }
	od
}

/* Check is answered from memory. */
active proctype Check() {
	bit first;
	do
	:: over ->
		first = fresh > 0;
		d_step { assert(!(first && memory)); first = 0 }
	od
}

#ifdef NO_RULE4
#define SETTLED skip
#else
#define SETTLED (waits == 0 || applied)
#endif

/* The old primary shows a commit that nobody waits for any more and that is
   nowhere else. */
active proctype Unconfirmed() { d_step { promoted && !end[OLD] -> end[OLD] = 3 } }

/* Another node ends the one session or opens the other, in whichever server is
   the primary. The node that ended it may be dead; then any node that finds it
   ended answers. */
active proctype Other() {
	bit server;
	if
	:: d_step { !promoted -> opened[OLD] = 1; opened[NEW] = 1; leases = L };
	   known = 1; goto done
	:: d_step { NEW_MAY -> opened[NEW] = 1 };
	   known = 1; goto done
	:: d_step { !promoted -> end[OLD] = 1; end[NEW] = 1; leases = L; waits = L }
	:: d_step { NEW_MAY && !end[NEW] -> end[NEW] = 2; waits = L }
	:: goto find		/* the call that ended it got no answer, and tries again */
	fi;
	if
	:: SETTLED
	:: skip;
find:	   LEASE;
	   connect(server);
#ifdef NO_COMMIT_WHEN_ENDED
	   d_step { end[server] != 0 -> server = OLD; waits = L };
#else
	   d_step { end[server] != 0 && COMMITS(server) -> leases = (server == OLD -> L : leases); server = OLD; waits = L };
#endif
	   SETTLED
	fi;
	over = 1;
done:	skip
}

#define DOWN(timer) timer = (timer > 0 -> timer-1 : 0)

active proctype Tick() {
	do
	:: d_step { DOWN(leases); DOWN(fresh); DOWN(sent); DOWN(heartbeat); DOWN(waits) }
	od
}
