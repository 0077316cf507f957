package directoryrun

import "time"

// SetTryFor sets how long a dry run goes on to further people.
func (r *Runs) SetTryFor(d time.Duration) { r.tryFor = d }
