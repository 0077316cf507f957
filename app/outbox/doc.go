// Package outbox delivers jobs that are queued in the database to hosts that may be slow
// or dead, so that one tenant's jobs never wait for another's.
//
// The table belongs to the caller, such as app/mail. A [Queue] says how to fetch what is
// due, who owns it, where it goes, and how to try it; [Queue.Run] fetches and tries work
// until its context ends. Work has these states:
//
//	           claim                    success
//	queued ───────────────▶ claimed ───────────────▶ sent
//	  ▲  ▲                   │ │  │
//	  │  └── claim runs out ─┘ │  └────────────────▶ dead: refused permanently,
//	  │     (the node died)    │                     or the last try failed
//	  └───── retry: due again ─┘
//	         after the backoff
//
// The claim is a conditional statement that one of many workers wins, in this process
// or another one. So work is sent at least once, and twice when a node dies between
// the host's reply and the commit of the result.
//
// Slots bound what a node does in parallel. The numbers are those of mail; limiter.go has
// those of endpoints, too:
//
//   - 32 tries, each in a goroutine of its own: 12 of one share (its owner), 4 to
//     one host. About a third of the slots is for urgent work alone.
//   - Hosts that have answered slowly share a quarter of the slots, one try each. An
//     unknown mail host counts as fast, an unknown endpoint as slow. A try that turns
//     out to be slow is cancelled when work for fast hosts has no slot, and is tried
//     again among the slow ones.
//   - Work waits in four lanes, by urgency and speed of the host. In a lane shares
//     take turns, and in a share its hosts.
//
// So a thousand dead hosts delay the work for a fast one by about a second, and only
// until each has been tried once.
//
//	outbox.go      Queue, Run and Drain
//	backoff.go     what follows a try: sent, retry or dead
//	dispatch.go    the loop that starts, cancels and ends tries
//	limiter.go     how many tries may run, in all and of one share or host
//	poller.go      how the table is read, batch by batch
//	waiting.go     what is due, by lane, in the order in which it is started
//	try.go         one try
//	hosts.go       which hosts are slow
//	breaker.go     rests while the one server for all work can't be reached
package outbox
