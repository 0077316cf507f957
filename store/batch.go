package store

// WriteRows calls write for batches of at most size rows, until it fails. A row with a value
// that the database refuses goes to leaveOut, so that it doesn't hold back the rows of other
// tenants: WriteRows finds it by halving the batch. It returns the rows that are not written.
func WriteRows[T any](rows []T, size int, write func([]T) error, leaveOut func(T)) (unwritten []T, err error) {
	for n := size; len(rows) > 0; {
		n = min(n, len(rows))
		err := write(rows[:n])
		switch {
		case err == nil:
			rows, n = rows[n:], size
		case !IsValueRefused(err):
			return rows, err
		case n > 1:
			n /= 2
		default:
			leaveOut(rows[0])
			rows, n = rows[1:], size
		}
	}
	return nil, nil
}
