/*
 * The revocation lease, to be checked by spin: scripts/model.sh. ../lease.md says what
 * is modelled and why; the code is store/lease and app/session.
 *
 * There is one session, one change that ends it, and one unrelated change. A node
 * polls, loads the session from the database and answers checks, all at once. At
 * every step it can pause for any time; every step that asks the database can
 * fail, before or after it took effect; and the node can be killed, leave, lose
 * its row and come back. The answer that the session has ended comes from the
 * call that ended it, on this node or elsewhere, or from one that found it ended.
 *
 * No check that begins after that answer accepts the session: the assertion in
 * Check. Each switch NO_... removes one rule of the protocol, and spin has to
 * find a check that accepts.
 *
 * One node is enough. Nodes interact only through rows of the database, and the
 * answer waits for all of them: what several nodes do, seen from the one where
 * the check accepts, the one here can do as well.
 *
 * Time is counted in ticks. Every clock is a timer that loses one at each tick,
 * so the number of states is finite; between two ticks anything may happen, or
 * nothing.
 */

#ifndef L
#define L 2		/* ticks in a lease */
#endif
#ifdef NO_LONG_SILENCE
#define DEAD L
#else
#define DEAD (2*L)	/* ticks without a heartbeat before the row is removed: three leases in the code */
#endif

/* The database. */
byte drawn;		/* change_position, with */
bit locked;		/* its lock, held from the drawing of a number to the commit */
byte end, other;	/* the numbers of the two changes, 0 until they are committed */
bit row;		/* the node has a row, in which it says */
byte applied;		/* the number up to which it has applied all changes, */
byte silence;		/* and ticks since its last heartbeat */

#define NEWEST (end > other -> end : other)

/* The node. */
bit memory;		/* the session is in memory, and valid */
bit forgot;		/* memory was discarded since the current load began */
byte fresh;		/* timer: memory is valid */
byte sent;		/* timer: the lease that begins when the poll under way is sent */
byte due;		/* timer: to the next heartbeat */

/* The call that answers. */
byte waits;		/* timer: the lease that begins with the commit */
bit answered;

inline forget() { d_step { memory = 0; forgot = 1 } }

/* A poll that fails renews nothing. */
#define MAYFAIL if :: skip :: goto idle fi

active proctype Node() {
	bit mine;		/* it thinks that it has a row */
	byte position, read;

idle:	atomic { read = 0; sent = 0 };
	if
	:: sent = L;		/* a poll, counted from before it is sent */
	:: d_step {		/* killed; another process takes its place, with a new row. */
		memory = 0; forgot = 1; fresh = 0; due = 0;
		row = 0; mine = 0; position = 0 }	/* In truth the old row stays, and makes */
	   goto idle		/* others wait: to have it gone at once is the worse case. */
	:: fresh = 0;		/* the node leaves */
	   d_step { row = 0; mine = 0; due = 0 }
	   goto idle
	fi;

#ifdef NO_REGISTERING_FIRST
	if :: !mine -> forget() :: else fi;
	goto look;
register:
#endif
	MAYFAIL;
	if
	:: mine && due > 0
	:: mine && due == 0 ->
		if
		:: d_step { row -> silence = 0 }
		:: atomic { !row -> goto enter }
		fi;
		goto heartbeat
	:: !mine ->
enter:		atomic {
			fresh = 0; row = 1; silence = 0;
#ifndef NO_REGISTERING_FIRST
			read = NEWEST;
#endif
			applied = read };
		MAYFAIL;
#ifndef NO_REGISTERING_FIRST
		forget();
#endif
		d_step { mine = 1; position = read };
heartbeat:		MAYFAIL;
#ifdef NO_HEARTBEAT_FROM_SENDING
		due = L
#else
		due = sent
#endif
	fi;
#ifdef NO_REGISTERING_FIRST
	goto renew;
look:
#endif
	MAYFAIL;
	read = NEWEST;
	if
	:: atomic { position < end && end <= read -> forget() }
	:: else
	fi;
	position = (read > position -> read : position);
#ifdef NO_REGISTERING_FIRST
	goto register;
renew:
#endif
#ifdef NO_LEASE_FROM_SENDING
	sent = L;
#endif
	fresh = sent;
	MAYFAIL;
	d_step { if :: row -> applied = position :: else fi };
	goto idle
}

/* Load asks the database for the session and keeps what it says, unless it has
   to be forgotten already: rule 5. */
active proctype Load() {
	bit alive;
	do
	:: forgot = 0;
	   alive = (end == 0);
	   d_step {
		if
#ifdef NO_RULE5
		:: alive -> memory = 1
#else
		:: alive && !forgot -> memory = 1
#endif
		:: else
		fi;
		alive = 0 }
	od
}

active proctype Check() {
	bit first;
	do
#ifdef NO_REVOCATION
	:: skip ->		/* not after the answer: it has to accept */
#else
	:: answered ->
#endif
#ifdef NO_FRESH_FIRST
		first = memory;
		d_step { assert(!(first && fresh > 0)); first = 0 }
#else
#ifdef NO_RULE3
		first = 1;
#else
		first = fresh > 0;
#endif
		d_step { assert(!(first && memory)); first = 0 }
#endif
	od
}

inline draw(n) {
	atomic {
#ifndef NO_DRAW_LOCK
		!locked -> locked = 1;
#endif
		drawn++; n = drawn }
}

/* Rule 4: every node has applied the change, or the lease has passed. */
#ifdef NO_RULE4
#define SETTLED(n) skip
#else
#define SETTLED(n) (waits == 0 || !row || applied >= n)
#endif

active proctype End() {
	byte n;
	draw(n);
	d_step { end = n; locked = 0; waits = L };
	if
	:: forget()		/* it was ended on the node itself */
	:: SETTLED(n)		/* it was ended elsewhere */
	:: skip;		/* the node that ended it may be dead; another one answers */
#ifndef NO_SETTLING_AGAIN
	   d_step { waits = L; n = NEWEST };
	   SETTLED(n)
#endif
	fi;
	answered = 1
}

active proctype Other() {
	byte n;
	draw(n);
	d_step { other = n; locked = 0 }
}

/* Remove is another node, which removes this one's row. */
active proctype Remove() {
	do
	:: d_step { row && silence == DEAD -> row = 0; silence = 0; applied = 0 }
	od
}

#define DOWN(timer) timer = (timer > 0 -> timer-1 : 0)

active proctype Tick() {
	do
	:: d_step {
		DOWN(fresh); DOWN(sent); DOWN(due); DOWN(waits);
		silence = (row && silence < DEAD -> silence+1 : silence) }
	od
}
